/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_stacks - user stacks of the threads of one process, walked without BPF.
 *
 * The permissions of ptrace(2) are enough. A user has them for his own processes
 * without any capability.
 *
 * A blocked thread is read without being stopped (procfs/thread_copy.h), or was
 * read with its files in /proc (procfs/helper.h). That gives PC, SP and stack,
 * which is all that most walks need. A thread that runs, or whose walk lacks a
 * register, is stopped for a moment (procfs/thread_copy.h).
 * The walk then runs over the copy (unwind/walk.h), with tables that a process
 * without privileges makes (procfs/walk_tables.h). If the stack is larger than
 * 64 KiB or continues in another place, another copy is made, with another stop
 * if the thread has to be stopped.
 *
 * The mappings are read again when a walk reaches an address where nothing was
 * mapped, and when they are older than 10 ms. The first walk that reaches a file
 * waits for its table, up to 3 seconds per process in all; after that, walks
 * continue without it.
 *
 * A thread is not stopped in a system call whose time limit would begin again
 * (quiet_copy_is_timed(), and calls that were seen to restart after a stop): its
 * walk ends where the register is missing. A call that could not be known before,
 * such as on a socket with SO_RCVTIMEO, has one wait lengthened.
 *
 * Visible from outside: after a stop, /proc/PID/task/TID/syscall says
 * restart_syscall instead of nanosleep, poll or futex, with the same arguments.
 * Stops count as context switches, and the recorder gets SIGCHLD.
 */
#ifndef STACKTOOLS_PROCFS_USER_STACKS_H
#define STACKTOOLS_PROCFS_USER_STACKS_H

#include "base/err.h"
#include "capture/types.h"
#include "procfs/helper.h"
#include "procfs/walk_tables.h"

#include <sys/types.h>

/*
 * thread_refusal - why the stack of a thread cannot be read.
 * Sources: ptrace(2), "Ptrace access mode checking"; Documentation/admin-guide/LSM/Yama.rst.
 */

enum thread_refusal {
	THREAD_REFUSAL_GONE, /* ended, or its number belongs to another process */
	THREAD_REFUSAL_KTHREAD,
	THREAD_REFUSAL_COMPAT, /* an x32 program */
	THREAD_REFUSAL_TRACED, /* by another tracer: gdb, strace */
	THREAD_REFUSAL_OTHERS, /* belongs to another user */
	THREAD_REFUSAL_PRIVILEGED, /* has capabilities that this process lacks */
	THREAD_REFUSAL_UNDUMPABLE, /* has switched this off, or its file may not be read */
	THREAD_REFUSAL_YAMA, /* kernel.yama.ptrace_scope */
	THREAD_REFUSAL_FORBIDDEN, /* by something else: a seccomp filter, a security module */
	THREAD_REFUSAL_LATE, /* did not stop: it waits for something that cannot be interrupted */
	THREAD_REFUSAL_OTHER,
	THREAD_REFUSAL_COUNT
};

const char *thread_refusal_name(enum thread_refusal why); /* a short word, "" for an unknown value */

/*
 * Why thread TID of process PID gave CODE, with the message and CODE in *E; -ESRCH
 * if the thread is gone. PRIVILEGED: the process that was refused has
 * CAP_SYS_PTRACE, even if this process has dropped it.
 */
enum thread_refusal thread_refusal_explain(pid_t pid, pid_t tid, int code, bool privileged, struct err *e);

struct user_stacks;

/*
 * For process PID, which is read through R (copied). The tables T must outlive
 * *RET. Reads nothing of the process yet. -ESRCH if it does not exist; -ENOMEM,
 * -EMFILE.
 */
int user_stacks_open(const struct thread_memory *r, struct walktables *t, uint32_t pid,
	struct user_stacks **ret, struct err *e);
void user_stacks_close(struct user_stacks *p); /* NULL is fine */

/*
 * The user stack of thread TID now. P owns the frames and exact of *RET, which are
 * valid until the next call; its id is 0. COMPLETE if a row says that the
 * outermost frame was reached, or led to a return address of zero; UNVERIFIED if
 * a frame pointer did; TRUNCATED beyond 512 frames or 256 KiB; else STOPPED with
 * the reason. For a thread that can be read but not stopped, the result is what
 * was found without a stop.
 *
 * If there is no stack, -errno with the message, which is counted by reason:
 * -ESRCH gone, -EPERM and -EACCES not allowed, -ENOEXEC x32, -ETIMEDOUT it
 * did not stop.
 */
int user_stacks_take(struct user_stacks *p, uint32_t tid, struct cap_stack *ret, struct err *e);

/* What was copied of a thread while it was blocked: its call, and LEN bytes of its stack, 0 = there are none.
 */
struct user_stacks_copy {
	struct quiet_copy_call call;
	char state; /* its letter in stat */
	uint64_t from; /* the address of the bytes, as by quiet_copy_stack() */
	const void *bytes;
	size_t len;
};

/* Likewise, of the thread as it was in COPY; what the walk lacks beyond that is read as it is now. */
int user_stacks_take_copied(struct user_stacks *p, uint32_t tid, const struct user_stacks_copy *copy,
	struct cap_stack *ret, struct err *e);

struct user_stacks_stats {
	uint64_t stacks; /* taken */
	uint64_t stops; /* how often a thread was stopped for them */
	uint64_t stopped_ns, longest_ns; /* in all, and the longest */
	uint64_t quiet; /* stacks taken without a stop */
	uint64_t spared; /* cut short, because a stop would have restarted a call */
	uint64_t again; /* calls restarted all the same */
	uint64_t refused[THREAD_REFUSAL_COUNT];
};

void user_stacks_stats(const struct user_stacks *p, struct user_stacks_stats *ret);

#endif
