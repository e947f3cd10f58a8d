#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Off-CPU time and run-queue delay of threads, against what perf sched makes of the same switches.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
perf sched record -k CLOCK_MONOTONIC -o "$TMP/probe.data" -- true >"$TMP/log" 2>&1 ||
	skip_all "perf sched cannot record here: $(tail -n 1 "$TMP/log")"

# Three threads and two loops on one CPU: one thread of less weight that sleeps, and two that answer each
# other through pipes, one of which sleeps before it does. Each prints its own time.
cat "$TOP/t/lib/crowd.py" - >"$TMP/three.py" <<'EOF'
ask, answer = os.pipe(), os.pipe()

def sleeps():
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    for _ in range(150):
        time.sleep(.003)

def asks():
    for _ in range(200):
        os.write(ask[1], b"x")
        os.read(answer[0], 1)

def answers():
    for _ in range(200):
        os.read(ask[0], 1)
        time.sleep(.002)
        os.write(answer[1], b"x")

def timed(function):
    begin = time.monotonic_ns()
    function()
    said.append(f"{function.__name__} {threading.get_native_id()} {begin} {time.monotonic_ns()}")
    time.sleep(.001)  # perf's row of a wait comes with the next one

said = []
threads = [threading.Thread(target=timed, args=[f]) for f in (sleeps, asks, answers)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(*said, sep="\n")
EOF
python=$(python3 -c 'import sys; print(sys.executable)')
run timeout -k 5 120 perf sched record -k CLOCK_MONOTONIC -m 4M -o "$TMP/sched.data" -- "$BIN/offcpu-record" -q --force --events -o "$TMP/s.cap" \
	-- "$python" "$TMP/three.py" 7>&-
is "$rc" 0 "a program is recorded while perf sched records it"
still_balanced "$TMP/s.cap"
grep -E '^(sleeps|asks|answers) ' "$out" >"$TMP/said"
is "$(wc -l <"$TMP/said")" 3 "it had three threads"

# TID BEGIN WAIT RUNNABLE of each wait, in ns: ours, and perf's, whose rows end with a run, after the wait.
# Where the thread was preempted, R, it did not wait.
"$BIN/symbolize" -q --format=json --events "$TMP/s.cap" | perl -MCpanel::JSON::XS -ne 'my $w = decode_json($_);
	print "$w->{tid} $w->{first_ns} $w->{total_ns} $w->{runnable_ns}\n" if $w->{type} eq "wait"' >"$TMP/ours"
perf sched timehist --state -i "$TMP/sched.data" 2>"$TMP/err" >"$TMP/rows"
perl -ne 'next unless /^ *(\d+)\.(\d{6}) \[\d+\] .*\[(\d+)(?:\/\d+)?\] +([\d.]+) +([\d.]+) +([\d.]+) +(\S+)/;
	my ($end, $tid, $state, $wait, $delay, $run) = ("$1$2" * 1000, $3, $7, map { $_ * 1e6 } $4, $5, $6);
	printf "%d %.0f %.0f %.0f\n", $tid, $end - $run - $wait, $wait, $delay if ($last{$tid} // "R") =~ /^[SD]/;
	$last{$tid} = $state' "$TMP/rows" >"$TMP/perf"

# sums FILE TID BEGIN END: WAITS WAIT RUNNABLE of those that lie within that time
sums() {
	awk -v tid="$2" -v from="$3" -v to="$4" '$1 == tid && $2 >= from && $2 + $3 <= to { n++; wait += $3; runnable += $4 }
		END { printf "%d %.0f %.0f\n", n, wait, runnable }' "$1"
}

# agrees OURS PERFS MARGIN NAME: in ns, to 1 % and the margin
agrees() {
	ok "$4" perl -e 'my ($a, $b, $margin) = @ARGV; exit !($a > 0 && abs($a - $b) <= $b / 100 + $margin)' "$1" "$2" "$3"
}
while read -r name tid begin end; do
	read -r n wait runnable <<-EOT
		$(sums "$TMP/ours" "$tid" "$begin" "$end")
	EOT
	read -r perf_n perf_wait perf_runnable <<-EOT
		$(sums "$TMP/perf" "$tid" "$begin" "$end")
	EOT
	within "$n" "$perf_n" 2 "$name: as many waits as perf sched has, to 2 %"
	agrees "$wait" "$perf_wait" "$((n * 5000))" "$name: its time off the CPU, to 1 % and 5 us a wait"
	# perf counts from the beginning of the wake-up; the scheduler from when the thread is queued, and it takes
	# no time if the switch follows at once
	agrees "$runnable" "$perf_runnable" "$((n * 25000))" "$name: its run-queue delay, to 1 % and 25 us a wait"
done <"$TMP/said"
tap_done
