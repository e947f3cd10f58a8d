/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procinfo - small facts of /proc/PID.
 * Formats: proc_pid_status(5), proc_pid_comm(5), proc_pid_exe(5).
 */
#ifndef STACKTOOLS_PROCINFO_H
#define STACKTOOLS_PROCINFO_H

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

#endif
