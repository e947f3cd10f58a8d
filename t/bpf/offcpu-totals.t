#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Recorded totals match what the recorded threads measured themselves.
# shellcheck disable=SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# Threads with known waits: no wait may be missing, and no other may be recorded.
stolen=$(steal_ns)
"$BIN/offcpu-record" -v --force --preempted -o "$TMP/w.cap" -- "$OBJ/t/work/waits" >"$TMP/said" 2>"$err"
is $? 0 "a threaded program is recorded to its end"
is "$(wc -l <"$TMP/said")" 8 "all eight threads print how long they waited"
stolen=$(($(steal_ns) - stolen + 10000000))
[ "$stolen" -eq 10000000 ] && stolen=0
judged "$TMP/w.cap"

ok "the recorded time of each thread is not shorter than the requested time" judge requested
ok "the recorded time matches what each thread measured, to 1 %" judge measured
ok "blocked and runnable time add up to wall-clock minus CPU time (schedstat), to 1 %" judge off
ok "as many waits are recorded as the threads made" judge count
ok "seen = recorded + filtered + lost, in waits and in ns" balanced "$TMP/w.cap"
is "$(waits "$TMP/w.cap" '$n += $w->{total_ns}')" "$(counter "$TMP/w.cap" waits.recorded_ns)" \
	"the times of all waits add up to waits.recorded_ns"
is "$(waits "$TMP/w.cap" '$n += $w->{count}')" "$(counter "$TMP/w.cap" waits.recorded)" \
	"the counts of all waits add up to waits.recorded"
is "$(waits "$TMP/w.cap" '$h{$w->{comm}} = 1 if $w->{comm} =~ /^w-/' | wc -l)" 8 "each thread has its own name"
is "$(waits "$TMP/w.cap" '$n++ if $w->{max_ns} > $w->{total_ns} || $w->{max_ns} * $w->{count} < $w->{total_ns}')" 0 \
	"the longest wait is consistent with total and count"

# The same without --preempted: what is not recorded is counted, and the sum is still exact.
rec "$TMP/f.cap" --min 30ms --max 900ms -- "$OBJ/t/work/waits"
is "$rc" 0 "--min and --max record"
ok "--min and --max: seen = recorded + filtered + lost" balanced "$TMP/f.cap"
is "$(waits "$TMP/f.cap" '$n++ if $w->{max_ns} < 3e7 || $w->{max_ns} > 9e8')" 0 "no recorded wait is shorter than --min or longer than --max"
is "$(waits "$TMP/f.cap" '$n += $w->{count} if $w->{comm} eq "w-long" && $w->{total_ns} >= 1e9')" 0 \
	"a wait longer than --max is not recorded"
ok "waits longer than --max are counted" test "$(counter "$TMP/f.cap" filtered.max)" -ge 1
ok "waits shorter than --min are counted" test "$(counter "$TMP/f.cap" filtered.min)" -ge 40

# An idle server: each thread waits for about the whole recording.
mkfifo "$TMP/in"
"$OBJ/t/work/idle" 20 <"$TMP/in" >"$TMP/pid" &
exec 7>"$TMP/in"
until_true test -s "$TMP/pid"
pid=$(cat "$TMP/pid")
at_exit_kill "$pid"
rec "$TMP/idle.cap" -d 2 -p "$pid"
is "$rc" 0 "an idle server is recorded"
dur=$(waits "$TMP/idle.cap" '$n = $c{duration_ns}')
between "$dur" 1990000000 4000000000 "-d 2 records for 2 s"
is "$(waits "$TMP/idle.cap" '$h{$w->{tid}} += $w->{count}' | wc -l)" 21 "all threads of an idle server are recorded"
is "$(waits "$TMP/idle.cap" '$n++ if abs($w->{total_ns} - $c{duration_ns}) > $c{duration_ns} / 100')" 0 \
	"each thread of an idle server waits for the whole recording, to 1 %"
is "$(waits "$TMP/idle.cap" '$n++ if !$w->{open} || !$w->{initial} || $w->{count} != 1')" 0 \
	"each thread of an idle server has one wait, which is initial and open"
is "$(waits "$TMP/idle.cap" '$n++ if kernel() !~ /futex_wait/ && kernel() !~ /pipe_read/')" 0 \
	"a wait that began before the recording has its kernel stack"
is "$(waits "$TMP/idle.cap" '$n++ if $w->{comm} eq "i-wait" && user() !~ /^wait_for_ever;idle(;|$)/')" 0 \
	"a wait that began before the recording has its user stack"
ok "open waits: seen = recorded + filtered + lost" balanced "$TMP/idle.cap"

# A wait that begins before the recording and ends during it, and one that begins during it
rec_start "$TMP/end.cap" -q -p "$pid"
exec 7>&-
wait "$rec_pid"
is $? 0 "the recording ends with status 0 when its target exits"
is "$(waits "$TMP/end.cap" '$n += $w->{count} if $w->{tid} == $w->{pid} && $w->{initial} && !$w->{open}')" 1 \
	"a wait from before the recording that ends during it is initial and not open"
# threads that exit may wait for each other if spinlocks sleep (PREEMPT_RT)
is "$(waits "$TMP/end.cap" '$n += $w->{initial} ? 1 : 1000 if $w->{comm} eq "i-wait" && kernel() =~ /futex_wait/')" 20 \
	"waits of threads that are blocked until they exit are initial"
is "$(waits "$TMP/end.cap" '$n++ if $w->{open}')" 0 "no wait of a process that ended is open"

# Real-time classes. Where ends are estimated, as beside processes that this kernel hides, this is by what they keep, too.
for class in --fifo --rr; do
	if ! chrt $class 1 true 2>/dev/null; then
		skip "$class" "no such class here"
		continue
	fi
	# where several switches in a row are hidden, an estimated end is that of the last one: another recording has none such
	for _ in 1 2 3; do
		stolen=$(steal_ns)
		"$BIN/offcpu-record" --force --preempted -o "$TMP/rt.cap" -- chrt $class 1 "$OBJ/t/work/waits" >"$TMP/said" 2>"$err"
		rc=$?
		stolen=$(($(steal_ns) - stolen + 10000000))
		[ "$stolen" -eq 10000000 ] && stolen=0
		judged "$TMP/rt.cap"
		judge off >/dev/null && break
	done
	ok "chrt $class: a program is recorded" test $rc -le 1 # 1: names or maps may be lost where CPUs are scarce
	ok "chrt $class: blocked and runnable time add up to wall-clock minus CPU time (schedstat), to 1 %" judge off
	ok "chrt $class: seen = recorded + filtered + lost" balanced "$TMP/rt.cap"
	echo "chrt $class: $(counter "$TMP/rt.cap" waits.end_estimated) ends were estimated" | diag
done

# Threads that wait for a CPU when the recording begins: whether they were woken or preempted before is not known
cpus=$(nproc)
busy=
for _ in $(seq $((cpus * 4))); do
	perl -e 'alarm 300; 1 while 1' &
	busy=$busy,$!
	at_exit_kill $!
done
rec "$TMP/run.cap" -d 500ms -p "${busy#,}"
ok "threads that are runnable when the recording begins are recorded" test "$rc" -le 1
ok "four of them for each CPU: at least that of $((cpus * 2)) is recorded from the beginning" test \
	"$(waits "$TMP/run.cap" '$n++ if $w->{initial} && !$w->{preempted}')" -ge $((cpus * 2))
is "$(waits "$TMP/run.cap" '$n++ if $w->{initial} && $w->{runnable_ns} != $w->{total_ns}')" 0 "and all of it was on a run queue"
is "$(waits "$TMP/run.cap" '$n++ if $w->{preempted}')" 0 "it is not called preempted"
# shellcheck disable=SC2046,SC2086 # words
kill $(echo $busy | tr , ' ')

# Many threads that begin to wait at once, while the recording begins: none of them lacks storage
perl -e 'use threads; alarm 300; threads->create(sub { select undef, undef, undef, 0.001 while 1 }) for 1 .. 60; sleep 300' &
many=$!
at_exit_kill $many
all_threads() { [ "$(find "/proc/$many/task" -mindepth 1 -maxdepth 1 | wc -l)" -eq 61 ]; }
until_true all_threads
n=0
for _ in $(seq 8); do
	rec "$TMP/many.cap" -d 100ms -p $many
	lost=$(counter "$TMP/many.cap" lost.no_storage) # not printed if nothing was lost
	n=$((n + ${lost:-0}))
done
is "$n" 0 "no wait of 60 busy threads lacks storage when a recording begins, in eight of them"
ok "each thread is there" test "$(waits "$TMP/many.cap" '$h{$w->{tid}} = 1' | wc -l)" -eq 61
kill $many

rec "$TMP/open.cap" -d 1 -- sleep 100
is "$(waits "$TMP/open.cap" '$n += $w->{open} && !$w->{initial} && kernel() =~ /nanosleep/')" 1 \
	"a wait that begins during the recording and outlasts it is open, not initial"
kill "$(waits "$TMP/open.cap" '$n = $w->{pid}')" 2>/dev/null
tap_done
