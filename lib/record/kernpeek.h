/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernpeek - the kernel's memory, read by a BPF program that is run and not
 * attached (BPF_PROG_TEST_RUN of a raw tracepoint's program, Linux 5.10).
 */
#ifndef STACKTOOLS_KERNPEEK_H
#define STACKTOOLS_KERNPEEK_H

#include "base/err.h"
#include "peek.h"

struct kernpeek;

/* On success release *RET with kernpeek_close(). Needs CAP_BPF and CAP_PERFMON; it needs no BTF. */
int kernpeek_open(struct kernpeek **ret, struct err *e);
void kernpeek_close(struct kernpeek *k); /* NULL is fine */

/*
 * Read BYTES (a multiple of PEEK_PIECE, up to PEEK_MAX) at ADDR; 0 = where the
 * calling thread's task is. As far as they can be read: `len` says. What is
 * returned is valid until the next call, in whatever thread or child process,
 * which may not run at the same time; NULL when the program cannot be run. It
 * calls nothing that a child of a program with threads may not.
 */
const struct peek *kernpeek_at(struct kernpeek *k, uint64_t addr, size_t bytes);

/*
 * Does raw tracepoint sched_switch tell who leaves, and in what state? 0 when
 * it told of this thread, which sleeps a moment for it, what is true. Else the
 * kernel's own -errno, or -ENOTSUP.
 */
int kernpeek_switch(struct kernpeek *k);

/* The arguments of the system call that kernpeek_at() makes. */
struct kernpeek_call {
	uint64_t number, arg[3];
};

void kernpeek_call(const struct kernpeek *k, struct kernpeek_call *ret);

#endif
