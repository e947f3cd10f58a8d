#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Each wait is split at its wake-up: blocked, then on a run queue.
# shellcheck disable=SC2016,SC2034,SC2154 # Perl's variables; $events for record.sh; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
# the scheduler counts it with CONFIG_SCHED_INFO
cat /proc/[0-9]*/schedstat 2>/dev/null | awk '$2 { n++ } END { exit !n }' ||
	skip_all "this kernel does not count run-queue delay"

# Two loops and a thread of less weight that sleeps for 3 ms, on one CPU. It prints what the
# scheduler counted for it: time on run queues, and how often it slept.
cat "$TOP/t/lib/crowd.py" - >"$TMP/crowded.py" <<'EOF'
def queued():
    with open("/proc/thread-self/schedstat") as f:
        return int(f.read().split()[1])

# what was counted up to a time: between two equal counts it did not wait
def queued_at():
    while True:
        before, now = queued(), time.monotonic_ns()
        if queued() == before:
            return before, now

def sleeps():
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    (before, begin), n = queued_at(), 0
    while time.monotonic_ns() < begin + 2000000000:
        time.sleep(.003)
        n += 1
    after, end = queued_at()
    print(threading.get_native_id(), after - before, n, begin, end, flush=True)

thread = threading.Thread(target=sleeps)
thread.start()
thread.join()
EOF
rec "$TMP/s.cap" --events --preempted -- "$(python3 -c 'import sys; print(sys.executable)')" "$TMP/crowded.py" >"$TMP/said"
is "$rc" 0 "a program that shares its CPU is recorded"
read -r tid queued slept begin end <"$out"
events=1
sleeps='$w->{tid} == '$tid' && !$w->{preempted} && kernel() =~ /nanosleep/'
like "$(waits "$TMP/s.cap" '$n += $w->{count} if '"$sleeps")" "^($slept|$((slept + 1)))\$" "each sleep is recorded"
# it may wait for the CPU again before it ends
within "$(waits "$TMP/s.cap" '$n += $w->{runnable_ns} if $w->{tid} == '"$tid"' && $w->{first_ns} >= '"$begin"' &&
		$w->{first_ns} + $w->{total_ns} <= '"$end")" \
	"$queued" 1 "the time on run queues is what the scheduler counted (schedstat), to 1 %"
all=$(waits "$TMP/s.cap" '$n += $w->{total_ns} if '"$sleeps")
between "$((queued * 100 / all))" 3 90 "some of what looks like sleep is waiting for the CPU (in %)"
blocked=$(waits "$TMP/s.cap" 'if ('"$sleeps"') { $n += $w->{total_ns} - $w->{runnable_ns} }')
between "$((blocked / slept))" 3000000 3400000 "without it, a sleep takes the 3 ms that were requested"
is "$(waits "$TMP/s.cap" '$n++ if !defined $w->{runnable_ns}')" 0 "every wait is split"
is "$(waits "$TMP/s.cap" '$n++ if ($w->{runnable_ns} // 0) > $w->{total_ns}')" 0 "no wait was runnable for longer than it took"
is "$(waits "$TMP/s.cap" '$n++ if $w->{preempted} && $w->{runnable_ns} != $w->{total_ns}')" 0 \
	"a thread that lost the CPU was runnable throughout"
run "$BIN/symbolize" -q "$TMP/s.cap"
like "$(grep -c '^# wait:.* max_ns=[0-9]* runnable_ns=[0-9]* kind=[a-z-]* state=' "$out")" '^[1-9]' "the text has it too"
is "$(grep '^# wait:' "$out" | grep -vc runnable_ns=)" 0 "the text has it for all waits"

events=
# Waits that began before the recording, and those that are open at its end.
mkfifo "$TMP/in"
"$OBJ/t/work/idle" 5 <"$TMP/in" >"$TMP/pid" &
exec 7>"$TMP/in"
until_true test -s "$TMP/pid"
pid=$(cat "$TMP/pid")
at_exit_kill "$pid"
rec "$TMP/idle.cap" -d 1 -p "$pid"
is "$rc" 0 "an idle server is recorded"
is "$(waits "$TMP/idle.cap" '$n++ if !$w->{open} || $w->{runnable_ns}')" 0 "idle threads are not runnable"

if can_record raw; then
	rec "$TMP/raw.cap" --mode raw -d 1 -p "$pid"
	is "$(waits "$TMP/raw.cap" '$n++ if exists $w->{runnable_ns} && !defined $w->{runnable_ns}')" \
		"$(waits "$TMP/raw.cap" '$n++')" "in mode raw it is not known"
	run "$BIN/symbolize" -q "$TMP/raw.cap"
	is "$(grep -c runnable_ns= "$out")" 0 "and the text does not have it"
else
	skip "in mode raw it is not known" "no mode raw here"
	skip "and the text does not have it" "no mode raw here"
fi
tap_done
