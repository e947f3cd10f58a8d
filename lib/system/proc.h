/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proc - small facts from /proc/PID.
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

/* The status of process or thread ID; false if there is none. */
bool procinfo_status(uint32_t id, struct procinfo_status *ret);

/* Whether the process whose /proc/PID/status is open as FD is alive. Closes FD. */
bool procinfo_lives(int fd);

/*
 * Whether /proc belongs to the PID namespace of this process. If not, its PIDs
 * are those of another namespace: a namespace was entered without mounting /proc
 * in it.
 */
bool procinfo_own_namespace(void);

/*
 * The ID under which /proc shows the memory of process PID: PID, or the ID of
 * another thread if the main thread has ended before it. 0 if no thread is left.
 */
uint32_t procinfo_living(uint32_t pid);

/* The name of process PID; "" if it is gone. It may contain any byte but NUL. */
void procinfo_comm(uint32_t pid, char comm[PROCINFO_COMM_LEN]);

/* The path of its executable without " (deleted)"; free it. NULL if it cannot be read. */
char *procinfo_exe(uint32_t pid);

/* Remove the " (deleted)" that the kernel appends to the path of a deleted file; true if it was there. */
bool procinfo_strip_deleted(char *path);

/*
 * threadstat - facts about a thread from /proc/PID/task/TID.
 * Formats: proc_pid_schedstat(5), proc_pid_stat(5), proc_pid_status(5), proc_pid_syscall(5),
 * time_namespaces(7).
 */

#define THREADSTAT_TICK_NS 10000000u /* resolution of start_boot_ns: USER_HZ is 100 */

struct threadstat {
	char comm[16];
	char state; /* letter of ps(1) */
	uint32_t ppid;
	uint32_t flags; /* PF_* of the kernel's sched.h */
	/*
	 * Start time on CLOCK_BOOTTIME of the machine (not of this time
	 * namespace), rounded down to whole ticks.
	 */
	uint64_t start_boot_ns;
	uint64_t start_code, end_code, start_stack; /* addresses; 0 or 1 = hidden from us */
};

/* Read thread TID of process TGID. 0 or -errno: -ESRCH or -ENOENT if it is gone. */
int threadstat_read(uint32_t tgid, uint32_t tid, struct threadstat *ret);

/* Its CPU time in ns, as counted by the scheduler; 0 if unavailable. */
uint64_t threadstat_ran(uint32_t tgid, uint32_t tid);

/*
 * Whether the kernel has taken it off its CPU: the state in threadstat is
 * "sleeping" already before that. True if /proc/PID/task/TID/syscall does not say.
 */
bool threadstat_is_off_cpu(uint32_t tgid, uint32_t tid);

/* Its ID in its own, innermost PID namespace; TID if unavailable. */
uint32_t threadstat_own_id(uint32_t tgid, uint32_t tid);

#endif
