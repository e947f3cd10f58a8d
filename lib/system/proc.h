/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proc - small facts of /proc/PID.
 * Formats: proc_pid_status(5), proc_pid_comm(5), proc_pid_exe(5).
 */
#ifndef STACKTOOLS_SYSTEM_PROC_H
#define STACKTOOLS_SYSTEM_PROC_H

#include "base/base.h"

#define PROCINFO_COMM_LEN 16 /* with NUL: TASK_COMM_LEN of Linux */

struct procinfo_status {
	uint32_t tgid;
	char state; /* letter of ps(1) */
};

/* Of a process or thread ID; false when there is none. */
bool procinfo_status(uint32_t id, struct procinfo_status *ret);

/* Does the process live whose file /proc/PID/status FD is? FD is closed. */
bool procinfo_lives(int fd);

/*
 * Is /proc that of this process's own PID namespace? Else its numbers are
 * those of others: a namespace was entered, and /proc not mounted in it.
 */
bool procinfo_own_namespace(void);

/*
 * The ID by which /proc shows the memory of process PID: its own, or, when its
 * main thread has ended before others, that of one of these. 0 when none is
 * left.
 */
uint32_t procinfo_living(uint32_t pid);

/* The name of process PID; "" when it is gone. Any byte but NUL may be in it. */
void procinfo_comm(uint32_t pid, char comm[PROCINFO_COMM_LEN]);

/* The path of its executable without " (deleted)", free(3) it; NULL when it cannot be read. */
char *procinfo_exe(uint32_t pid);

/* Cut the mark that the kernel puts behind the path of a deleted file; true when it was there. */
bool procinfo_strip_deleted(char *path);

/*
 * threadstat - what /proc/PID/task/TID tells of a thread in one line.
 * Formats: proc_pid_schedstat(5), proc_pid_stat(5), proc_pid_status(5), proc_pid_syscall(5),
 * time_namespaces(7).
 */

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
