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
 * (quiet_copy_is_timed(), and those that a stop has shown to be such): its walk
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
 * thread_refusal - why a thread may not be looked at.
 * Sources: ptrace(2), "Ptrace access mode checking"; Documentation/admin-guide/LSM/Yama.rst.
 */

enum thread_refusal {
	THREAD_REFUSAL_GONE, /* ended, or another process has its number */
	THREAD_REFUSAL_KTHREAD,
	THREAD_REFUSAL_COMPAT, /* a 32-bit program */
	THREAD_REFUSAL_TRACED, /* by somebody else: gdb, strace */
	THREAD_REFUSAL_OTHERS, /* another user's */
	THREAD_REFUSAL_PRIVILEGED, /* it has capabilities that are missing here */
	THREAD_REFUSAL_UNDUMPABLE, /* it has switched that off, or its file may not be read */
	THREAD_REFUSAL_YAMA, /* kernel.yama.ptrace_scope */
	THREAD_REFUSAL_FORBIDDEN, /* by something else: a seccomp filter, a security module */
	THREAD_REFUSAL_LATE, /* it did not stop: it waits for something that cannot be interrupted */
	THREAD_REFUSAL_OTHER,
	THREAD_REFUSAL_COUNT
};

const char *thread_refusal_name(enum thread_refusal why); /* a short word, "" beyond the last */

/*
 * Why CODE came of thread TID of process PID, told in *E with that code;
 * -ESRCH for one that is gone. PRIVILEGED: who was refused has CAP_SYS_PTRACE,
 * though this process may have given it up.
 */
enum thread_refusal thread_refusal_tell(pid_t pid, pid_t tid, int code, bool privileged, struct err *e);

struct user_stacks;

/*
 * For process PID, of which nothing is looked at yet, reached by R (a copy is
 * kept), by the tables T, which outlive it. -ESRCH when there is none;
 * -ENOMEM, -EMFILE.
 */
int user_stacks_open(const struct thread_memory *r, struct walktables *t, uint32_t pid,
	struct user_stacks **ret, struct err *e);
void user_stacks_close(struct user_stacks *p); /* NULL is fine */

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
int user_stacks_take(struct user_stacks *p, uint32_t tid, struct cap_stack *ret, struct err *e);

struct user_stacks_stats {
	uint64_t stacks; /* that were taken */
	uint64_t stops; /* how often a thread was stopped for them */
	uint64_t stopped_ns, longest_ns; /* in all, and the longest */
	uint64_t quiet; /* stacks for which none was stopped */
	uint64_t spared; /* cut short rather than stop a call that would have begun anew */
	uint64_t again; /* calls begun anew all the same */
	uint64_t refused[THREAD_REFUSAL_COUNT];
};

void user_stacks_stats(const struct user_stacks *p, struct user_stacks_stats *ret);

#endif
