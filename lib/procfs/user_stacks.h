/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_stacks - user stacks of the threads of one process, for somebody without
 * BPF: what ptrace(2) asks for is enough, which one has on one's own processes
 * without any capability.
 *
 * A thread that is blocked is read without being stopped (procfs/thread_copy.h). That
 * gives PC, SP and stack, which is all that most walks need. One that runs, or
 * whose walk lacks a register, is stopped for a moment (procfs/thread_copy.h), and again
 * where the stack is larger than 64 KiB or goes on in another place. The walk
 * comes after that, over the copy (unwind/walk.h), by tables that a process
 * without privileges makes (procfs/walk_tables.h).
 *
 * What is mapped is read again when a walk comes to a place where nothing was,
 * and when it was read more than 10 ms ago. The first walk that comes to a file
 * waits for its table, up to 3 seconds a process in all; then they go on
 * without.
 *
 * A thread is not stopped in a system call whose time limit would begin anew
 * (ptquiet_is_timed(), and those that a stop has shown to be such): its walk
 * ends where the register is missing. What could not be known before, sockets
 * with SO_RCVTIMEO for one, has one wait lengthened.
 *
 * Seen from outside: after a stop /proc/PID/task/TID/syscall says
 * restart_syscall where it said nanosleep, poll or futex, with the same
 * arguments. Stops count as context switches, and the recorder gets SIGCHLD.
 */
#ifndef STACKTOOLS_PROCFS_USER_STACKS_H
#define STACKTOOLS_PROCFS_USER_STACKS_H

#include "base/err.h"
#include "capture/types.h"
#include "procfs/helper.h"
#include "procfs/walk_tables.h"

#include <sys/types.h>

/*
 * ptwhy - why a thread may not be looked at.
 * Sources: ptrace(2), "Ptrace access mode checking"; Documentation/admin-guide/LSM/Yama.rst.
 */

enum ptwhy {
	PTWHY_GONE, /* ended, or another process has its number */
	PTWHY_KTHREAD,
	PTWHY_COMPAT, /* a 32-bit program */
	PTWHY_TRACED, /* by somebody else: gdb, strace */
	PTWHY_OTHERS, /* another user's */
	PTWHY_PRIVILEGED, /* it has capabilities that are missing here */
	PTWHY_UNDUMPABLE, /* it has switched that off, or its file may not be read */
	PTWHY_YAMA, /* kernel.yama.ptrace_scope */
	PTWHY_FORBIDDEN, /* by something else: a seccomp filter, a security module */
	PTWHY_LATE, /* it did not stop: it waits for something that cannot be interrupted */
	PTWHY_OTHER,
	PTWHY_COUNT
};

const char *ptwhy_name(enum ptwhy why); /* a short word, "" beyond the last */

/*
 * Why CODE came of thread TID of process PID, told in *E with that code;
 * -ESRCH for one that is gone. PRIVILEGED: who was refused has CAP_SYS_PTRACE,
 * though this process may have given it up.
 */
enum ptwhy ptwhy_tell(pid_t pid, pid_t tid, int code, bool privileged, struct err *e);

struct ptstack;

/*
 * For process PID, of which nothing is looked at yet, reached by R (a copy is
 * kept), by the tables T, which outlive it. -ESRCH when there is none;
 * -ENOMEM, -EMFILE.
 */
int ptstack_open(
	const struct ptreach *r, struct walktables *t, uint32_t pid, struct ptstack **ret, struct err *e);
void ptstack_close(struct ptstack *p); /* NULL is fine */

/*
 * The user stack of thread TID now. Frames and exact of *RET are P's, until
 * the next call; its id is 0. COMPLETE where a row says that the outermost frame
 * was reached, or led to a return address of zero; UNVERIFIED where a frame
 * pointer did; TRUNCATED beyond 512 frames or 256 KiB; else STOPPED with the
 * reason. A thread that may be read but not stopped has what was found without.
 *
 * -errno where there is no stack, with the message, and counted by reason:
 * -ESRCH gone, -EPERM and -EACCES not allowed, -ENOEXEC 32-bit, -ETIMEDOUT it
 * did not stop.
 */
int ptstack_take(struct ptstack *p, uint32_t tid, struct cap_stack *ret, struct err *e);

struct ptstack_stats {
	uint64_t stacks; /* that were taken */
	uint64_t stops; /* how often a thread was stopped for them */
	uint64_t stopped_ns, longest_ns; /* in all, and the longest */
	uint64_t quiet; /* stacks for which none was stopped */
	uint64_t spared; /* cut short rather than stop a call that would have begun anew */
	uint64_t again; /* calls begun anew all the same */
	uint64_t refused[PTWHY_COUNT];
};

void ptstack_stats(const struct ptstack *p, struct ptstack_stats *ret);

#endif
