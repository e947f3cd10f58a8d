/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ptquiet - what can be had of a thread without stopping it.
 *
 * Of one that is blocked the kernel tells PC and SP (/proc/PID/task/TID/syscall),
 * and its stack may be read: it does not change until the thread runs, which is
 * noticed (/proc/PID/task/TID/schedstat). That takes what ptrace(2) takes.
 * Formats: proc_pid_syscall(5), Documentation/scheduler/sched-stats.rst.
 */
#ifndef STACKTOOLS_PTQUIET_H
#define STACKTOOLS_PTQUIET_H

#include "procfs/ptcopy.h"

struct ptquiet_call {
	int64_t number; /* of the system call; -1 = none: a page fault, say */
	uint64_t args[6];
	uint64_t sp, pc;
};

/* TEXT is of such a file. False where the thread runs, or it is no such text. */
bool ptquiet_parse(const char *text, struct ptquiet_call *ret);

/*
 * Copy PC, SP and stack of a blocked thread, and the N areas at WANTED. 0;
 * -EAGAIN when it runs, or ran meanwhile; else -errno: -EPERM or -EACCES where
 * it may not be looked at, -ENOENT or -ESRCH when it is gone, -ENODATA where
 * the kernel does not count runs (no CONFIG_SCHED_INFO).
 */
int ptquiet_take(pid_t pid, pid_t tid, const uint64_t *wanted, size_t n, struct ptcopy *copy,
	struct ptquiet_call *call);

/*
 * Has this call a time limit, and would a stop make it begin anew? See
 * signal(7), "Interruption of system calls and library functions by stop
 * signals".
 */
bool ptquiet_is_timed(const struct ptquiet_call *call);

#endif
