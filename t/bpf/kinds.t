#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What kind of wait each is, of threads that are named by how they wait; one place, one stack.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

mkfifo "$TMP/in"
"$OBJ/t/work/kinds" "$TMP/log" <"$TMP/in" >"$TMP/pid" &
exec 7>"$TMP/in"
until_true test -s "$TMP/pid"
pid=$(cat "$TMP/pid")
at_exit_kill "$pid"
rec "$TMP/k.cap" -d 2 -p "$pid"
is "$rc" 0 "a program with threads that wait in different ways is recorded"

# kind_of_thread NAME [EXCEPT]: the kinds of its waits but for EXCEPT, those of a tenth of its time and more
kind_of_thread() {
	waits "$TMP/k.cap" '
		if ($w->{comm} eq "'"$1"'" && $w->{kind} !~ /^('"${2:-none}"')$/) { $h{$w->{kind}} += $w->{total_ns}; $h{all} += $w->{total_ns} }' |
		awk '{ ns[$1] = $2 } END { for (k in ns) if (k != "all" && ns[k] >= ns["all"] / 10) print k }' | sort | paste -sd ' '
}
is "$(kind_of_thread sleep)" sleep "a sleep"
is "$(kind_of_thread lock)" lock "a lock that another thread holds"
is "$(kind_of_thread condition sleep)" condition "a condition: another thread's answer"
is "$(kind_of_thread idle)" "idle sleep" "a worker without a job, and what its jobs do"
is "$(kind_of_thread fsync sleep)" fsync "fsync"
is "$(kind_of_thread pipe sleep)" pipe "a pipe"
is "$(kind_of_thread child sleep)" child "the end of a child process"
is "$(kind_of_thread join sleep)" condition "the end of a thread"
is "$(kind_of_thread net-receive sleep)" net-receive "an answer by TCP"
is "$(kind_of_thread poll sleep)" poll "poll"
is "$(kind_of_thread server 'sleep|net-receive')" idle "a server without a client, in its loop"
is "$(kind_of_thread kinds)" pipe "the main thread, which waits for its input to end"
is "$(waits "$TMP/k.cap" '$n++ if $w->{kind} eq "unknown"')" 0 "nothing is unknown"
run "$BIN/symbolize" -q "$TMP/k.cap"
like "$(grep -c '^# wait:.* kind=fsync state=' "$out")" '^[1-9]' "the text has the kind too"

# Two processes want one CPU: when a recording begins, one of them is on its run queue.
for _ in 1 2; do
	taskset -c 0 sh -c 'while :; do :; done' kinds-spin &
	spins="$spins $!"
	at_exit_kill "$!"
done
rec "$TMP/r.cap" -d 1 -p "$(echo "$spins" | sed 's/^ //; s/ /,/')"
# shellcheck disable=SC2086 # words
kill $spins
is "$(waits "$TMP/r.cap" '$h{$w->{kind}} = 1 if $w->{initial} && $w->{state} eq "R"')" "scheduler 1" \
	"a thread that is on a run queue when the recording begins"

# A rule of the user's
echo 'table  user=use_table  # our own' >"$TMP/rules"
run "$BIN/symbolize" -q --kinds "$TMP/rules" "$TMP/k.cap"
like "$(grep -A 1 'kind=table' "$out" | grep -c '^lock ')" '^[1-9]' "--kinds: a rule of the user's names a wait"
is "$("$BIN/stackreport" --tsv --by kind --kinds "$TMP/rules" "$TMP/k.cap" 2>/dev/null | awk -F '\t' '$NF == "table" { print $2, $3 }')" \
	"$("$BIN/symbolize" -q --kinds "$TMP/rules" "$TMP/k.cap" | sed -n 's/^# wait: count=\([0-9]*\) total_ns=\([0-9]*\) .* kind=table .*/\1 \2/p' |
		awk '{ c += $1; n += $2 } END { printf "%.0f %.0f\n", n, c }')" "stackreport --kinds has that kind"
is "$("$BIN/stackdiff" --tsv --by kind --kinds "$TMP/rules" "$TMP/k.cap" "$TMP/k.cap" 2>/dev/null | grep -c 'table$')" 1 "so has stackdiff"
echo 'zebra user=use_table' >"$TMP/rules"
is "$("$BIN/stackexport" --format=pprof "$TMP/k.cap" 2>/dev/null | gzip -dc | grep -ac zebra):$("$BIN/stackexport" --format=pprof \
	--kinds "$TMP/rules" "$TMP/k.cap" 2>/dev/null | gzip -dc | grep -ac zebra)" 0:1 "and stackexport"
echo 'table' >"$TMP/rules"
run "$BIN/symbolize" -q --kinds "$TMP/rules" "$TMP/k.cap"
is "$rc:$(head -n 1 "$err")" "2:symbolize: line 1 of '$TMP/rules': 'table' has no condition" \
	"--kinds: what is not a rule is refused"
run "$BIN/symbolize" --print-kinds
is "$rc" 0 "--print-kinds prints the usual rules"
cp "$out" "$TMP/rules"
same "$out" "$TOP/lib/symbols/kinds.table" "and they are those of the source"
run "$BIN/symbolize" -q --kinds "$TMP/rules" "$TMP/k.cap"
is "$rc" 0 "and can be the beginning of a file of one's own"

# Waits that began before the recording have the same stack as later ones at the same place.
run "$BIN/symbolize" -q "$TMP/k.cap"
is "$(grep -cE '[0-9a-f] (__schedule|schedule|do_nanosleep)\+' "$out")" 0 "the text has no frames of the scheduler itself"
grep -q '^# wait:.* initial=1' "$out" || fail "no wait had begun before the recording"
is "$("$BIN/fold" "$out" | grep -c '^sleep;.*nanosleep [0-9]')" 1 \
	"a place where a thread waited before the recording began, and later, is one"
run "$BIN/symbolize" -q --scheduler "$TMP/k.cap"
like "$(grep -cE '[0-9a-f] __schedule\+' "$out")" '^[1-9]' "--scheduler: with them"
is "$(waits "$TMP/k.cap" 'for (@{$w->{kernel_stack}}) { $n++ if ($_->{symbol} // "") eq "__schedule" && !$_->{scheduler} }')" 0 \
	"in JSON they are marked"

# A process that was stopped.
kill -STOP "$pid"
rec "$TMP/k.cap" -d 1 -p "$pid"
kill -CONT "$pid"
is "$(kind_of_thread sleep)" stopped "a stopped process"

# Waits in progress when the recording begins, and the same that are seen to begin.
"$OBJ/t/work/pauses" 60 >"$TMP/paused" &
pid=$!
at_exit_kill "$pid"
until_true test -s "$TMP/paused"
in_pause() { # all six threads sleep, five of them by their names
	[ "$(cat "/proc/$pid"/task/*/stat | awk '$3 == "S" { n[/\(p-/]++ } END { print n[0], n[1] }')" = "1 5" ]
}
until_true in_pause
rec "$TMP/k.cap" -d 1 -p "$pid"
is "$(waits "$TMP/k.cap" '$n++ if $w->{comm} =~ /^p-(poll|select|sem|signal)$/ && !($w->{initial} && $w->{open})')" 0 \
	"waits that go on before and after the recording"
paused="sleep sleep sleep condition signal"
for how in "in progress" "seen to begin"; do
	is "$(for t in poll select again sem signal; do kind_of_thread p-$t; done | paste -sd' ')" "$paused" \
		"$how: poll and select without descriptors, also again and again, sem_timedwait, sigtimedwait"
	[ "$how" = "in progress" ] || break
	rec "$TMP/k.cap" -- "$OBJ/t/work/pauses" 1
done
kill "$pid"
wait "$pid" 2>/dev/null
tap_done
