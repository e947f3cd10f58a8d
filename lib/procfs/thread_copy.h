/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * thread_copy - the registers of a thread and a copy of its stack.
 */
#ifndef STACKTOOLS_PROCFS_THREAD_COPY_H
#define STACKTOOLS_PROCFS_THREAD_COPY_H

#include "base/base.h"
#include "base/err.h"

#include <sys/types.h>

/*
 * The words of the architecture's struct pt_regs, as in struct offcpu_ev_snapshot.
 * Sources: arch/x86/include/uapi/asm/ptrace.h, arch/arm64/include/asm/ptrace.h.
 */
#if defined(__aarch64__)
#define THREAD_COPY_REGS 36
enum { THREAD_COPY_SP = 31, THREAD_COPY_PC = 32, THREAD_COPY_CALL = 35 };
#else
#define THREAD_COPY_REGS 21
enum { THREAD_COPY_AX = 10, THREAD_COPY_CALL = 15, THREAD_COPY_PC = 16, THREAD_COPY_SP = 19 };
#endif

#define THREAD_COPY_AREAS 8 /* from the stack of a Go thread to that of its goroutine there are five more */
#define THREAD_COPY_AREA_BYTES (64u << 10)

struct thread_copy_area {
	uint64_t from, len; /* LEN bytes could be read at FROM */
};

struct thread_copy_head {
	uint64_t regs[THREAD_COPY_REGS];
	uint64_t tls; /* base of the thread's local storage; 0 = not known */
	uint32_t all; /* 0 = only PC and SP are known; CALL (and AX) show whether it is in a call */
	uint32_t n_areas;
	struct thread_copy_area areas[THREAD_COPY_AREAS];
};

struct thread_copy {
	struct thread_copy_head head;
	uint8_t bytes[THREAD_COPY_AREAS][THREAD_COPY_AREA_BYTES];
};

/* Forget the contents: no known register, no area. */
void thread_copy_reset(struct thread_copy *c);

/*
 * Copy the memory of thread or process ID from FROM upwards, as far as it is
 * mapped, at most THREAD_COPY_AREA_BYTES. False if nothing could be read (errno
 * is EFAULT if nothing is mapped), or if there are THREAD_COPY_AREAS already.
 */
bool thread_copy_area(struct thread_copy *c, pid_t id, uint64_t from);

/*
 * quiet_copy - a copy of a thread that is made without stopping it.
 *
 * For a blocked thread, the kernel shows PC and SP (/proc/PID/task/TID/syscall),
 * and the stack can be read: it does not change until the thread runs, which
 * /proc/PID/task/TID/schedstat shows. This takes the permissions of ptrace(2).
 * Formats: proc_pid_syscall(5), Documentation/scheduler/sched-stats.rst.
 */

struct quiet_copy_call {
	int64_t number; /* of the system call; -1 = none, for example in a page fault */
	uint64_t args[6];
	uint64_t sp, pc;
};

/* TEXT is that of the file syscall. False if the thread runs, or TEXT is malformed. */
bool quiet_copy_parse(const char *text, struct quiet_copy_call *ret);

/* What a copy has of a blocked thread without its stack: PC, SP and call. */
void quiet_copy_begin(struct thread_copy *c, const struct quiet_copy_call *call);

/*
 * Copy to TO the stack of thread TID, whose SP this is: from *FROM upwards, as far
 * as it is mapped, at most LEN bytes, which is at most THREAD_COPY_AREA_BYTES. The
 * length, or -errno: -EFAULT if SP does not point to memory.
 */
ssize_t quiet_copy_stack(pid_t tid, uint64_t sp, void *to, size_t len, uint64_t *from);

/*
 * Copy PC, SP and stack of a blocked thread, and the N areas at WANTED. 0, with no
 * area for the stack if SP does not point to memory; -EAGAIN if the thread runs,
 * or ran meanwhile; -EPERM or -EACCES if it may not be read; -ENOENT or -ESRCH if
 * it is gone; -ENODATA if the kernel does not count runs (no CONFIG_SCHED_INFO);
 * or another -errno.
 */
int quiet_copy_take(pid_t pid, pid_t tid, const uint64_t *wanted, size_t n, struct thread_copy *copy,
	struct quiet_copy_call *call);

/*
 * Does this call have a time limit that would begin again after a stop? See
 * signal(7), "Interruption of system calls and library functions by stop
 * signals". NARROW: the number is one of i386.
 *
 * On arm64, also: could it end with EINTR at a stop? There a debugger does not see
 * the first argument that would be needed to restart it. Only calls that the kernel
 * itself is known to restart are not such.
 */
bool quiet_copy_is_timed(const struct quiet_copy_call *call, bool narrow);

/*
 * stop_copy - a copy of the registers and stack of a thread in another process,
 * which ptrace(2) stops for a moment.
 *
 * Nothing stays traced: each stop is made by a thread of its own, and when that
 * thread ends, for whatever reason, the kernel detaches what it traced. So a
 * recorder that is killed leaves nothing behind either, and a thread that does
 * not stop within STOP_COPY_WAIT_MS continues as if no stop had been requested.
 *
 * The traced program notices nothing: PTRACE_SEIZE and PTRACE_INTERRUPT send no
 * signal, the kernel resumes what they interrupted (ptrace(2), signal(7)),
 * signals that arrive meanwhile are delivered, and a job that was stopped
 * (SIGSTOP) stays stopped. Some system calls, such as epoll_wait(2), end with
 * EINTR at any stop. These are restarted too. That is reported, because their
 * time limit begins again.
 */

struct stop_copy_report {
	uint64_t stopped_ns; /* from the request to stop until the detach: it stood still for less */
	int64_t again; /* the number of the system call that was restarted; -1 = none */
	uint64_t again_arg; /* and its first argument */
};

/*
 * Stop thread TID, copy its registers, its stack and the N areas at WANTED, and
 * detach from it. 0,
 *   -EPERM      not allowed, or it is traced already
 *   -ESRCH      gone
 *   -ETIMEDOUT  it did not stop
 *   -ENOEXEC    a 32-bit thread on arm64; on another architecture than x86-64 and arm64
 * or another -errno.
 */
int stop_copy_take(pid_t tid, const uint64_t *wanted, size_t n, struct thread_copy *copy,
	struct stop_copy_report *reported);

#endif
