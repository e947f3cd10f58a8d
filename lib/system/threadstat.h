/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * threadstat - what /proc/PID/task/TID tells of a thread in one line.
 * Formats: proc_pid_schedstat(5), proc_pid_stat(5), proc_pid_status(5), proc_pid_syscall(5),
 * time_namespaces(7).
 */
#ifndef STACKTOOLS_THREADSTAT_H
#define STACKTOOLS_THREADSTAT_H

#include "base/base.h"

#define THREADSTAT_TICK_NS 10000000u /* of start_boot_ns: USER_HZ is 100 */

struct threadstat {
	char comm[16];
	char state; /* letter of ps(1) */
	uint32_t flags; /* PF_* of the kernel's sched.h */
	/*
	 * When it began, CLOCK_BOOTTIME of the machine (not of this time
	 * namespace), cut to whole ticks.
	 */
	uint64_t start_boot_ns;
	uint64_t start_code, end_code, start_stack; /* addresses; 0 or 1 = not told to us */
};

/* Of thread TID of process TGID. -errno: -ESRCH or -ENOENT when it is gone. */
int threadstat_read(uint32_t tgid, uint32_t tid, struct threadstat *ret);

/* The CPU time that it has had, in ns, as the scheduler counts it; 0 where that is not told. */
uint64_t threadstat_ran(uint32_t tgid, uint32_t tid);

/*
 * The kernel has taken it off its CPU: the state in threadstat is "sleeping" before that
 * already. True where /proc/PID/task/TID/syscall does not say.
 */
bool threadstat_is_off_cpu(uint32_t tgid, uint32_t tid);

/* Its id in its own, innermost PID namespace; TID itself where that is not told. */
uint32_t threadstat_own_id(uint32_t tgid, uint32_t tid);

#endif
