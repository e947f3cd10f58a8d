#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Each wait by itself (--events), against a program that logs the times of its own waits (t/work/timed.c).
# shellcheck disable=SC2016,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# Reads the log and the waits; "NAME BEFORE FROM TO AFTER" and "NAME BEGIN WOKEN END".
JUDGE='use strict; use warnings;
	my (%said, %got, %n);
	open my $f, "<", $ARGV[0] or die; while (<$f>) { my ($k, @t) = split; push @{$said{$k}}, \@t }
	open $f, "<", $ARGV[1] or die; while (<$f>) { my ($k, @t) = split; push @{$got{$k}}, \@t }
	for my $k (sort keys %said) {
		my @g = sort { $a->[0] <=> $b->[0] } @{$got{$k} || []};
		for my $s (sort { $a->[0] <=> $b->[0] } @{$said{$k}}) {
			# a wait that was over before the thread slept is none
			shift @g while @g && $g[0][2] < $s->[0];
			my $g = @g && $g[0][0] < $s->[3] ? shift @g : undef;
			$n{none}++, next if !$g;
			$n{seen}++;
			$n{outside}++ if $g->[0] < $s->[0] || $g->[2] > $s->[3];
			# the scheduler notes the wake-up shortly after it was requested
			$n{early}++ if $g->[1] < $s->[1];
			$n{woken}++ if $g->[1] >= $s->[1] && $g->[1] <= $s->[2] + 50000;
		}
	}
	printf "%d %d %d %d %d\n", map { $n{$_} // 0 } qw(seen none outside early woken);'

# each wait of threads that are not main: its name, begin, wake-up and end; without those in the exit
each_wait() {
	"$BIN/symbolize" -q --events --format=json "$1" | perl -MCpanel::JSON::XS -ne 'my $w = decode_json($_);
		next unless $w->{type} eq "wait" && $w->{count} == 1 && !$w->{preempted};
		next unless grep { ($_->{symbol} // "") =~ /nanosleep|pipe_read/ } @{$w->{kernel_stack}};
		my $end = $w->{first_ns} + $w->{total_ns};
		printf "%s %d %d %d\n", $w->{comm}, $w->{first_ns}, $end - ($w->{runnable_ns} // 0), $end'
}

# on one CPU: another one learns of a wake-up by an interrupt, which takes long if a host has that CPU
rec "$TMP/e.cap" --events --wakers -- taskset -c 0 "$OBJ/t/work/timed"
is "$rc" 0 'a program is recorded with its waits by themselves'
cp "$out" "$TMP/said"
each_wait "$TMP/e.cap" >"$TMP/got"
# shellcheck disable=SC2046 # five numbers
set -- $(perl -e "$JUDGE" "$TMP/said" "$TMP/got")
ok "each wait that the program logged was recorded, but for those without sleep: $1, not $2" test "$1" -ge 700
is "$3" 0 'each lies between the two times that its thread logged'
is "$4" 0 'no thread was woken before it could be'
ok "the wake-up is when the waker called: $5 of $1" test "$5" -ge $(($1 * 98 / 100))
ok "$(grep -c '^writer ' "$TMP/got") waits of the writer, which logs none, are recorded, too" test "$(grep -c '^writer ' "$TMP/got")" -ge 390

# all of it against the sums, which readers make of the same capture
"$BIN/symbolize" -q --events "$TMP/e.cap" >"$TMP/e.txt"
"$BIN/symbolize" -q "$TMP/e.cap" >"$TMP/s.txt"
is "$(grep -c '^# wait: count=1 ' "$TMP/e.txt")" "$(counter "$TMP/e.cap" waits.recorded)" 'each wait has a record'
is "$(grep '^# events: ' "$TMP/e.txt")" "# events: count=$(counter "$TMP/e.cap" waits.recorded)" 'the head says how many there are'
is "$(grep '^# totals: ' "$TMP/e.txt")" "$(grep '^# totals: ' "$TMP/s.txt")" 'the totals are the same as of sums'
ok 'sums are fewer records' test "$(grep -c '^# wait: ' "$TMP/s.txt")" -lt 100
for by in '' --wakers --no-idle '--weight runnable'; do
	# shellcheck disable=SC2086 # none, one or two words
	"$BIN/fold" --tid $by "$TMP/e.txt" >"$TMP/e.folded"
	# shellcheck disable=SC2086
	"$BIN/fold" --tid $by "$TMP/s.txt" >"$TMP/s.folded"
	same "$TMP/s.folded" "$TMP/e.folded" "fold${by:+ $by} makes the same of both"
done
is "$(grep -E '^[^#	 ].* offcpu-time:' "$TMP/e.txt" | sed 's/.*\] //; s/:.*//' | LC_ALL=C sort -c -k1,1 2>&1)" '' 'records are in order of time'
is "$("$BIN/symbolize" -q --events -c sleeper "$TMP/e.txt" 2>&1 | head -n 1)" \
	"symbolize: '$TMP/e.txt': not a capture" 'text is refused as ever'
is "$("$BIN/symbolize" -q --events -c sleeper "$TMP/e.cap" | grep -c ' offcpu-time:')" \
	"$("$BIN/symbolize" -q --events "$TMP/e.cap" | grep -c '^sleeper .* offcpu-time:')" '-c selects among them'
like "$("$BIN/capinfo" "$TMP/e.cap")" ", $(counter "$TMP/e.cap" waits.recorded) events, " 'capinfo counts them'

# samples of what threads execute
rec "$TMP/on.cap" --events --on-cpu=997 -- sh -c 'i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done'
"$BIN/symbolize" -q --events --format=json "$TMP/on.cap" >"$TMP/on.json"
is "$(perl -MCpanel::JSON::XS -ne 'my $w = decode_json($_); $n++ if $w->{type} eq "sample" && $w->{count} == 1; END { print $n }' "$TMP/on.json")" \
	"$(counter "$TMP/on.cap" cpu.samples)" 'samples of what threads execute are by themselves, too'

# without --events, and where it means nothing
rec "$TMP/n.cap" -- true
run "$BIN/symbolize" --events "$TMP/n.cap"
is "$rc" 2 'a capture of sums has no events'
is "$(cat "$err")" "symbolize: '$TMP/n.cap' has sums of waits, not each by itself
symbolize: hint: record with offcpu-record --events" 'and the message says how to record them'
run "$BIN/symbolize" --events --format=perf "$TMP/e.cap"
is "$rc" 64 '--events and --format=perf exclude one another'
run "$BIN/offcpu-record" --events --mode procfs -- true
is "$rc" 64 '--events takes BPF'
can_record raw && {
	rec "$TMP/r.cap" --events --mode raw -- "$OBJ/t/work/timed"
	is "$rc" 0 'it is recorded in mode raw'
	is "$("$BIN/symbolize" -q --events "$TMP/r.cap" | grep -c '^# wait: count=1 ')" "$(counter "$TMP/r.cap" waits.recorded)" \
		'and there each wait has a record'
}

switched() {
	[ "$(wc -l <"$TMP/pid")" -gt 1 ]
}

# The recorder is stopped while threads wait more often than the ring buffer has room for.
mkfifo "$TMP/in"
"$OBJ/t/work/switch" futex 200000 <"$TMP/in" >"$TMP/pid" &
exec 7>"$TMP/in"
until_true test -s "$TMP/pid"
pid=$(head -n 1 "$TMP/pid")
at_exit_kill "$pid"
rec_start "$TMP/full.cap" --events -p "$pid"
kill -STOP "$rec_pid"
echo >&7
until_true switched
kill -CONT "$rec_pid"
rec_stop
summed=$(counter "$TMP/full.cap" waits.summed)
ok "what finds no room in the ring buffer is summed: $summed" test "${summed:-0}" -gt 1000
is "$("$BIN/symbolize" -q --events "$TMP/full.cap" | sed -n 's/^# wait: count=\([0-9]*\) .*/\1/p' | awk '{ n += $1 } END { printf "%d", n }')" \
	"$(counter "$TMP/full.cap" waits.recorded)" 'and no wait is lost by that'
ok "seen = recorded + filtered + lost" balanced "$TMP/full.cap"
like "$(cat "$TMP/rec.err")" 'kept as a part of sums alone: the ring buffer was nearly full' 'the summary says so'
tap_done
