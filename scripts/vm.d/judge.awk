# SPDX-License-Identifier: GPL-2.0-or-later
# What symbolize --format=json prints, in figures; by awk, for the guest with little
# memory has no Perl.
#
#   symbolize --format=json CAP | awk -f judge.awk [-v said=FILE] [-v begun=NS]
#
# Prints "NAME VALUE" a line: waits, complete (percent of the waits that were no loss
# of the CPU alone), kernel (the same of kernel stacks), threads, comms, initial (records of
# waits that were there before the recording), first_ms (the
# first wait that began after BEGUN). With SAID, what t/work-waits printed: "thread NAME
# ..." and off_error, the largest difference of one thread's time off the CPU, in
# percent of its own clock, and sum_error, that of all threads together.
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

function abs(x) {
	return x < 0 ? -x : x
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
		printf "complete %.2f\n", 100 * user / waits
		printf "kernel %.2f\n", 100 * kernel / waits
	}
	for (why in bad)
		printf "incomplete %s %d\n", why, bad[why]
	if (soonest)
		printf "first_ms %.0f\n", (soonest - begun) / 1e6
	if (!said)
		exit
	while ((getline line <said) > 0) {
		if (split(line, w, " ") != 6)
			continue
		name = w[1]
		tid = w[2]
		difference = off[tid] - w[6]
		printf "thread %s blocked %.1f ms, measured %.1f; off the CPU %.1f ms, by its own clock %.1f\n", name,
			blocked[tid] / 1e6, w[5] / 1e6, off[tid] / 1e6, w[6] / 1e6
		if (w[6] > 0 && 100 * abs(difference) / w[6] > worst)
			worst = 100 * abs(difference) / w[6]
		if (blocked[tid] > w[5] * 1.02 + 3e6)
			too_long = too_long " " name
		if (blocked[tid] < w[4] * 0.98)
			too_short = too_short " " name
		own += w[6]
		got += off[tid]
		judged++
	}
	printf "judged %d\n", judged
	if (own)
		printf "off_error %.2f\nsum_error %.2f\n", worst, 100 * abs(got - own) / own
	print "too_long" too_long
	print "too_short" too_short
}
