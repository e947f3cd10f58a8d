/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ptstop - a thread of another process stopped for a moment by ptrace(2), its
 * registers and stack copied.
 *
 * Nothing stays traced: each stop is made by a thread of its own, and when that
 * one ends, however it does, the kernel lets go of whatever it traced. So a
 * recorder that is killed leaves nothing behind either, and a thread that does
 * not stop within PTSTOP_WAIT_MS goes on as if nothing had been asked.
 *
 * The traced program notices nothing: PTRACE_SEIZE and PTRACE_INTERRUPT send
 * no signal, the kernel goes on with what they interrupted (ptrace(2),
 * signal(7)), signals that come meanwhile are handed on, and a job that was
 * stopped (SIGSTOP) stays so. Some system calls end with EINTR at any stop,
 * epoll_wait(2) for one: these are begun again as well, and that is told,
 * since their time limit begins again too.
 */
#ifndef STACKTOOLS_PTSTOP_H
#define STACKTOOLS_PTSTOP_H

#include "base/err.h"
#include "procfs/ptcopy.h"

#define PTSTOP_WAIT_MS 200

struct ptstop_told {
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
int ptstop_take(pid_t tid, const uint64_t *wanted, size_t n, struct ptcopy *copy, struct ptstop_told *told);

#endif
