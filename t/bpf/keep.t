#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The ring (--keep), what SIGUSR2 writes of it, and --trigger.
# shellcheck disable=SC2016,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# 50 threads that sleep for a millisecond each time, until stdin ends
mkfifo "$TMP/in"
"$OBJ/t/work/switch" sleep 100000000 <"$TMP/in" >"$TMP/pid" &
exec 7>"$TMP/in"
echo >&7
until_true test -s "$TMP/pid"
pid=$(head -n 1 "$TMP/pid")
at_exit_kill "$pid"

ring_bytes() { # that the recorder's file without a name takes on the disk
	for r_fd in /proc/"$rec_pid"/fd/*; do
		case $(readlink "$r_fd") in
		"$TMP"/*' (deleted)') stat -L -c '%b %B' "$r_fd" | awk '{ print $1 * $2 }' ;;
		esac
	done
}

# When each wait ended, in seconds since the recording began: the earliest and the latest.
ends() {
	"$BIN/symbolize" -q --events --format=json "$1" | perl -MCpanel::JSON::XS -ne 'my $w = decode_json($_);
		$begin = $w->{start_mono_ns} if $w->{type} eq "capture";
		next if $w->{type} ne "wait" || $w->{open};
		my $end = ($w->{first_ns} + $w->{total_ns} - $begin) / 1e9;
		$min = $end if !defined $min || $end < $min; $max = $end if !defined $max || $end > $max;
		END { printf "%.3f %.3f\n", $min, $max }'
}

rec_start "$TMP/k.cap" --events --keep 1s -p "$pid"
sleep 6
ring=$(ring_bytes)
rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$rec_pid/status")
bytes=$(stat -c %s "$TMP/k.cap")
rec_stop
is "$rc" 0 'a recording with a ring ends as others do'
ok "until then the capture has no waits: $bytes bytes" test "$bytes" -lt 100000
# eight bytes a wait at least
all=$((($(counter "$TMP/k.cap" waits.recorded) + $(counter "$TMP/k.cap" waits.overwritten)) * 8))
ok "after six seconds the ring takes $ring bytes, all would take $all" test "$ring" -gt 10000 -a "$ring" -lt $((all * 3 / 4))
ok "nor does the recorder: $rss kB" test "$rss" -lt 150000
# shellcheck disable=SC2046 # two numbers
set -- $(ends "$TMP/k.cap")
# on a busy machine more than a second may pass between two flushes
ok "the last second of six is in the capture, $1 to $2" perl -e \
	'exit !($ARGV[1] - $ARGV[0] >= 0.9 && $ARGV[1] - $ARGV[0] < 4.5 && $ARGV[1] > 5.9)' "$1" "$2"
kept=$("$BIN/capinfo" --json "$TMP/k.cap" | perl -ne 'print $1 if /"kept_ns":\s*(\d+)/')
between "${kept:-0}" 900000000 4500000000 'capinfo says how long what was kept is'
like "$("$BIN/symbolize" -q "$TMP/k.cap" | grep '^# host')" 'duration=[01234]\.' 'and so does symbolize'
is "$(counter "$TMP/k.cap" waits.recorded)" "$(waits "$TMP/k.cap" '$n += $w->{count}')" 'what was recorded is there, in waits'
is "$(counter "$TMP/k.cap" waits.recorded_ns)" "$(waits "$TMP/k.cap" '$n += $w->{total_ns}')" 'and in ns'
ok 'and seen = recorded + overwritten + filtered + lost' balanced "$TMP/k.cap"
like "$(cat "$TMP/rec.err")" '[0-9]+ waits, .* s: older than what --keep or --max-size keeps' 'the summary says how many were dropped'
is "$(waits "$TMP/k.cap" '$h{$w->{user_stack_verdict}} = ""; $h{"unnamed"} = "" if grep { !$_->{symbol} } @{$w->{user_stack}}')" \
	'complete ' 'their stacks and names are there'

# sums, without --events
rec_start "$TMP/s.cap" --keep 1s -p "$pid"
sleep 3
rec_stop
ok 'sums are kept likewise' test "$(counter "$TMP/s.cap" waits.overwritten)" -gt 1000
is "$(counter "$TMP/s.cap" waits.recorded)" "$(waits "$TMP/s.cap" '$n += $w->{count}')" 'and what was recorded is there'

# a bound of size
rec_start "$TMP/m.cap" --events --max-size 1M -p "$pid"
sleep 6
ring=$(ring_bytes)
rec_stop
is "$rc" 0 'a recording with a bound of size ends as others do'
size=$(stat -c %s "$TMP/m.cap")
ok "the capture takes $size bytes, all waits would take more than eight each" test "$size" -le 1048576 \
	-a "$size" -lt $((($(counter "$TMP/m.cap" waits.recorded) + $(counter "$TMP/m.cap" waits.overwritten)) * 8))
ok "the ring, $ring bytes, is bounded too" test "$ring" -gt 100000 -a "$ring" -le 1200000
is "$(counter "$TMP/m.cap" waits.recorded)" "$(waits "$TMP/m.cap" '$n += $w->{count}')" 'what was recorded is there'
# a command line of 800 KB is in the capture as well
long=$(printf '%0100000d' 0)
run timeout -k 5 120 "$BIN/offcpu-record" --force --max-size 1M -d 100 -o "$TMP/m2.cap" -- sh -c 'sleep 100' "$long" "$long" "$long" "$long" "$long" "$long" "$long" "$long"
pkill -f 'sleep 10[0]$'
is "$rc" 1 'a recording that has no room for waits ends early'
like "$(cat "$err")" "m2.cap': processes and stacks alone take three quarters of --max-size: ended early" 'and says so'
like "$(cat "$err")" 'hint: raise --max-size, or record less' 'with a remedy'
like "$("$BIN/capinfo" "$TMP/m2.cap" | grep '^duration')" 'stopped by: --max-size leaves no room for waits$' 'which the capture has too'
ok 'and it is within its bound' test "$(stat -c %s "$TMP/m2.cap")" -le 1048576

# what SIGUSR2 writes is there even if the recorder is killed
rec_start "$TMP/u.cap" --events --keep 1s -p "$pid"
sleep 2
kill -USR2 "$rec_pid"
written() {
	[ "$(stat -c %s "$TMP/u.cap")" -gt 100000 ]
}
ok 'SIGUSR2 writes what is kept' until_true written
kill -0 "$rec_pid"
is $? 0 'and the recording goes on'
run "$BIN/capinfo" --verify "$TMP/u.cap"
like "$rc:$(cat "$out")" '^1:incomplete: its recorder still runs: it is whole up to [0-9.]+ s of recording$' 'until it ends, capinfo says so'
cp "$TMP/u.cap" "$TMP/copy.cap"
run "$BIN/capinfo" --verify "$TMP/copy.cap"
like "$rc:$(cat "$out")" '^1:incomplete: ends at byte [0-9]+ without a trailer' 'of a copy it does not know'
ok 'the copy can be read' sh -c '"$1" --tsv --all "$2" 2>/dev/null | grep -c "[0-9]" >/dev/null' sh "$BIN/stackreport" "$TMP/copy.cap"
sleep 1
kill -KILL "$rec_pid"
wait "$rec_pid" 2>/dev/null
# shellcheck disable=SC2046
set -- $("$BIN/symbolize" -q --events --format=json "$TMP/u.cap" | perl -ne '$n++ if /"type":"wait"/; END { print $n }')
ok "it can be read after SIGKILL: $1 waits" test "$1" -gt 1000
rec_start "$TMP/p.cap" -p "$pid"
kill -USR2 "$rec_pid"
sleep 0.3
rec_stop
is "$rc" 0 'without a ring SIGUSR2 harms nothing'

# a full disk; of the smaller one, all but the rest of the last second is dropped, as a second has no room
mkdir "$TMP/small"
for size in 1m 200k; do
	unshare -m --propagation private sh -c 'mount -t tmpfs -o size=$4 none "$1/small" || exit 77
		"$2" -q --events --keep 1h -o "$1/small/f.cap" -p "$3" -d 4
		rc=$?
		cp "$1/small/f.cap" "$1/f.cap"
		exit $rc' sh "$TMP" "$BIN/offcpu-record" "$pid" $size 7>&-
	rc=$?
	if [ $rc -eq 77 ]; then
		skip "on a full disk of $size the ring keeps less" 'no tmpfs can be mounted here'
	else
		is "$rc" 0 "on a full disk of $size the ring keeps less"
		ok 'which is counted' test "$(counter "$TMP/f.cap" waits.overwritten)" -gt 1000
		is "$(counter "$TMP/f.cap" waits.recorded)" "$(waits "$TMP/f.cap" '$n += $w->{count}')" 'and what was recorded is there'
	fi
done
kill "$pid"
exec 7>&-

# --trigger
rec "$TMP/t.cap" --events --keep 10s --trigger 400ms -- sh -c 'sleep 0.1; sleep 0.2; sleep 0.5; sleep 100'
is "$rc" 0 '--trigger ends the recording'
pkill -f 'sleep 10[0]$'
like "$("$BIN/capinfo" "$TMP/t.cap" | grep '^duration')" 'stopped by: a wait of 0\.5[0-9]* s of thread [0-9]+$' 'and says which wait it was'
is "$("$BIN/symbolize" -q --events "$TMP/t.cap" | awk '/^# wait/ { split($4, t, "="); if (t[2] >= 4e8 && !/open=1/) n++ } END { print n + 0 }')" \
	2 'that wait is there, of the shell and of its child'
rec "$TMP/t2.cap" --trigger 10s -d 1 -- sleep 0.5
is "$("$BIN/capinfo" "$TMP/t2.cap" | sed -n 's/.*stopped by: //p')" 'command exited' 'without such a wait it ends as ever'

# the command line
for bad in '--keep 0' '--max-size 1' '--max-size x' '--mode procfs --max-size 1M' '--keep x' '--trigger 0' '--mode procfs --keep 1s' '--mode procfs --trigger 1s'; do
	# shellcheck disable=SC2086 # several words
	run "$BIN/offcpu-record" $bad -o "$TMP/x.cap" -- true
	is "$rc" 64 "refused: $bad"
done
run "$BIN/offcpu-record" -q --keep 1s -o /proc/x.cap -- true
is "$rc" 2 'refused: a ring where no file can be'
like "$(cat "$err")" "^offcpu-record: cannot create a file in '/proc'" 'and the message says where'
tap_done
