/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * thread_copy - the registers of a thread and a copy of its stack.
 */
#ifndef STACKTOOLS_PROCFS_THREAD_COPY_H
#define STACKTOOLS_PROCFS_THREAD_COPY_H

#include "base/base.h"
#include "base/err.h"

#include <sys/types.h>

/* The words of x86-64's struct pt_regs, as in struct offcpu_ev_snapshot: arch/x86/include/uapi/asm/ptrace.h
 */
#define THREAD_COPY_REGS 21
enum { THREAD_COPY_AX = 10, THREAD_COPY_CALL = 15, THREAD_COPY_PC = 16, THREAD_COPY_SP = 19 };

#define THREAD_COPY_AREAS 4
#define THREAD_COPY_AREA_BYTES (64u << 10)

struct thread_copy_area {
	uint64_t from, len; /* what was at FROM; LEN bytes could be read */
};

struct thread_copy_head {
	uint64_t regs[THREAD_COPY_REGS];
	uint32_t all; /* 0 = of the registers there are PC and SP, and by AX and CALL whether it is in a call
		       */
	uint32_t n_areas;
	struct thread_copy_area areas[THREAD_COPY_AREAS];
};

struct thread_copy {
	struct thread_copy_head head;
	uint8_t bytes[THREAD_COPY_AREAS][THREAD_COPY_AREA_BYTES];
};

/* Forget what it holds: no register known, no area. */
void thread_copy_reset(struct thread_copy *c);

/*
 * Copy what thread or process ID has from FROM upwards, as far as it is
 * mapped and an area is long. False when nothing could be read (errno is EFAULT
 * where nothing is mapped), or there are THREAD_COPY_AREAS already.
 */
bool thread_copy_area(struct thread_copy *c, pid_t id, uint64_t from);

/*
 * quiet_copy - what can be had of a thread without stopping it.
 *
 * Of one that is blocked the kernel tells PC and SP (/proc/PID/task/TID/syscall),
 * and its stack may be read: it does not change until the thread runs, which is
 * noticed (/proc/PID/task/TID/schedstat). That takes what ptrace(2) takes.
 * Formats: proc_pid_syscall(5), Documentation/scheduler/sched-stats.rst.
 */

struct quiet_copy_call {
	int64_t number; /* of the system call; -1 = none: a page fault, say */
	uint64_t args[6];
	uint64_t sp, pc;
};

/* TEXT is of such a file. False where the thread runs, or it is no such text. */
bool quiet_copy_parse(const char *text, struct quiet_copy_call *ret);

/*
 * Copy PC, SP and stack of a blocked thread, and the N areas at WANTED. 0, with
 * no area where SP leads to no memory;
 * -EAGAIN when it runs, or ran meanwhile; else -errno: -EPERM or -EACCES where
 * it may not be looked at, -ENOENT or -ESRCH when it is gone, -ENODATA where
 * the kernel does not count runs (no CONFIG_SCHED_INFO).
 */
int quiet_copy_take(pid_t pid, pid_t tid, const uint64_t *wanted, size_t n, struct thread_copy *copy,
	struct quiet_copy_call *call);

/*
 * Has this call a time limit, and would a stop make it begin anew? See
 * signal(7), "Interruption of system calls and library functions by stop
 * signals".
 */
bool quiet_copy_is_timed(const struct quiet_copy_call *call);

/*
 * stop_copy - a thread of another process stopped for a moment by ptrace(2), its
 * registers and stack copied.
 *
 * Nothing stays traced: each stop is made by a thread of its own, and when that
 * one ends, however it does, the kernel lets go of whatever it traced. So a
 * recorder that is killed leaves nothing behind either, and a thread that does
 * not stop within STOP_COPY_WAIT_MS goes on as if nothing had been asked.
 *
 * The traced program notices nothing: PTRACE_SEIZE and PTRACE_INTERRUPT send
 * no signal, the kernel goes on with what they interrupted (ptrace(2),
 * signal(7)), signals that come meanwhile are handed on, and a job that was
 * stopped (SIGSTOP) stays so. Some system calls end with EINTR at any stop,
 * epoll_wait(2) for one: these are begun again as well, and that is told,
 * since their time limit begins again too.
 */

struct stop_copy_told {
	uint64_t stopped_ns; /* from when it was asked to stop until it was let go: it stood still for less */
	int64_t again; /* the number of the system call that was begun again; -1 = none */
	uint64_t again_arg; /* and its first argument */
};

/*
 * Stop thread TID, copy its stack and those of the N areas at WANTED, let it go. 0,
 *   -EPERM      not allowed, or it is traced already
 *   -ESRCH      gone
 *   -ETIMEDOUT  it did not stop
 *   -ENOEXEC    a 32-bit program
 * or another -errno.
 */
int stop_copy_take(
	pid_t tid, const uint64_t *wanted, size_t n, struct thread_copy *copy, struct stop_copy_told *told);

#endif
