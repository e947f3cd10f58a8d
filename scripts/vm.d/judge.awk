# SPDX-License-Identifier: GPL-2.0-or-later
# What symbolize --format=json prints, in figures; by awk, for the guest with little
# memory has no Perl.
#
#   symbolize --format=json CAP | awk -f judge.awk [-v said=FILE] [-v begun=NS]
#
# Prints "NAME VALUE" a line: waits, complete (percent of the waits that were no loss
# of the CPU alone), kernel (the same of kernel stacks), threads, comms, initial (records of
# waits that were there before the recording), first_ms (the first wait that began after
# BEGUN).
#
# With SAID, what t/work-waits printed: how far what was recorded is from what each thread
# measured around its waits, in percent: error, of the thread where it is most, and
# sum_error, of all of them together. A thread that has been woken up waits on, by
# its own clock, until it gets a CPU: what it measured is not less than what it was
# blocked, and not more than that and what it was runnable.
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

function outside(low, high, x) {
	return x < low ? low - x : x > high ? x - high : 0
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
		tid = w[2]
		printf "thread %s blocked %.1f ms, and runnable %.1f; by its own clock %.1f, at least %.1f\n", w[1],
			blocked[tid] / 1e6, (off[tid] - blocked[tid]) / 1e6, w[5] / 1e6, w[4] / 1e6
		# what a tick can do to a short wait
		error = outside(blocked[tid] - 4e6, off[tid] + 4e6, w[5]) / w[5]
		if (error > worst)
			worst = error
		if (blocked[tid] < w[4])
			too_short = too_short " " w[1]
		own += w[5]
		least += blocked[tid]
		most += off[tid]
		judged++
	}
	printf "judged %d\n", judged
	if (own)
		printf "error %.2f\nsum_error %.2f\n", 100 * worst, 100 * outside(least, most, own) / own
	print "too_short" too_short
}
