# SPDX-License-Identifier: GPL-2.0-or-later
# Summarizes the output of symbolize --format=json in figures. In awk, because the guest with little
# memory has no Perl.
#
#   symbolize --format=json CAP | awk -f judge.awk [-v said=FILE] [-v begun=NS]
#
# Prints one "NAME VALUE" per line: waits; kernel (percentage of waits with a complete kernel stack,
# without preemptions); complete (the same for user stacks, without the waits of threads that had
# released their memory, at an exit or in an exec: they have no user stack); threads; comms;
# processes; initial (records of waits that began before the recording); first_ms (the first wait
# that began after BEGUN).
#
# With SAID, the output of t/work/waits: the difference between the recorded times and those that
# each thread reports, in percent: error, of the thread with the largest one, and sum_error, of all
# threads together. No thread may have slept longer than it measured around its waits. Together they
# must not have been off the CPU for less than by their own clocks, for each thread the smaller of
# two: wall-clock minus CPU time also includes interrupts and, for a single thread, the time that an
# emulator takes from it while it is leaving the CPU.
function field(name,    at, rest) {
	at = index($0, "\"" name "\":")
	if (!at)
		return ""
	rest = substr($0, at + length(name) + 3, 400)
	if (substr(rest, 1, 1) == "\"") {
		rest = substr(rest, 2)
		sub(/".*/, "", rest)
	} else
		sub(/[,}].*/, "", rest)
	return rest
}

# by how many percent A is larger than B
function above(a, b) {
	return a > b ? b > 0 ? 100 * (a - b) / b : 100 : 0
}

index($0, "{\"type\":\"wait\"") == 1 {
	tid = field("tid")
	n = field("count")
	ns = field("total_ns")
	comm[field("comm")] = 1
	process[field("pid")] = 1
	if (!(tid in threads)) {
		threads[tid] = 1
		thread_n++
	}
	off[tid] += ns
	if (field("preempted") == "true")
		next
	if (field("state") == "S")
		blocked[tid] += ns
	waits += n
	if (field("kernel_stack_verdict") == "complete")
		kernel += n
	why = field("user_stack_verdict")
	if (why == "complete")
		user += n
	else if (why != "" && why != "null") {
		if (field("user_stack_error") != "null")
			why = why "/" field("user_stack_error")
		bad[why] += n
		if (why ~ /\/(exiting|in-exec)$/)
			without += n
	}
	initial += field("initial") == "true"
	first = field("first_ns") + 0
	if (begun && field("initial") == "false" && first > begun && (!soonest || first < soonest))
		soonest = first
}

END {
	printf "waits %d\n", waits
	printf "threads %d\n", thread_n
	printf "initial %d\n", initial
	for (c in comm)
		list = list " " c
	print "comms" list
	list = ""
	for (p in process)
		list = list " " p
	print "processes" list
	if (waits) {
		printf "complete %.2f\n", (waits > without ? 100 * user / (waits - without) : 100)
		printf "kernel %.2f\n", 100 * kernel / waits
	}
	for (why in bad)
		printf "incomplete %s %d\n", why, bad[why]
	if (soonest)
		printf "first_ms %.0f\n", (soonest - begun) / 1e6
	if (!said)
		exit
	while ((getline line <said) > 0) {
		if (split(line, w, " ") != 7)
			continue
		tid = w[2]
		printf "thread %s asleep %.1f ms, measured %.1f, asked for %.1f; off the CPU %.1f ms, by its own clock %.1f\n", w[1],
			blocked[tid] / 1e6, w[5] / 1e6, w[4] / 1e6, off[tid] / 1e6, w[6] / 1e6
		# the effect of a timer tick on a short wait
		error = above(blocked[tid] - 4e6, w[5])
		if (error > worst)
			worst = error
		# a thread may be kept from leaving the CPU while its timer is already running
		if (above(w[4], off[tid]) > 2)
			too_short = too_short " " w[1]
		measured += w[5]
		asleep += blocked[tid]
		own += w[5] < w[6] ? w[5] : w[6]
		got += off[tid]
		judged++
	}
	printf "judged %d\n", judged
	if (judged) {
		error = above(asleep, measured)
		if (error < above(own, got))
			error = above(own, got)
		printf "error %.2f\nsum_error %.2f\n", worst, error
	}
	print "too_short" too_short
}
