/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernsample - threads of our own, what is known of them, and the bytes that
 * the kernel keeps of each.
 *
 * Two threads of this process and a child process, with names that nobody can
 * guess. They sleep, twice, until kernsamples_end(), so that their tasks and
 * what these point to can be looked at meanwhile.
 */
#ifndef STACKTOOLS_KERNSAMPLE_H
#define STACKTOOLS_KERNSAMPLE_H

#include "record/kernpeek.h"
#include "system/proc.h"

#include <pthread.h>

#define KERNSAMPLES 3
#define KERNSAMPLE_CHILD 2 /* the last one is a process of its own */

struct kernsample {
	/* the truth */
	uint32_t own_tid; /* as this PID namespace has it */
	char comm[16];
	struct threadstat stat;
	/* CPU time by schedstat, while they slept for the first time, and for the second */
	uint64_t ran_before, ran;
	/* by BPF's helpers */
	uint64_t task;
	uint32_t pid, tgid; /* of the first PID namespace */
	/* what lies there; `again` some milliseconds later, `asleep` in the second sleep */
	size_t len;
	uint8_t bytes[PEEK_MAX], again[PEEK_MAX], asleep[PEEK_MAX];
	/* where a system call has put the user's registers: bytes from the stack's first one; 0 = not found
	 */
	uint64_t stack, regs_from_stack;
	int error; /* it could not be taken: -errno */
};

struct kernsamples;

struct kernsample_job {
	struct kernsamples *s;
	struct kernsample *of;
};

struct kernsamples {
	struct kernsample *of; /* KERNSAMPLES */
	struct kernpeek *peek;
	pthread_t threads[KERNSAMPLE_CHILD];
	struct kernsample_job jobs[KERNSAMPLES];
	int n_threads;
	int child;
	int done[2], more[2], end[2]; /* pipes: one is ready; it is to sleep once more; to end */
};

/* Whatever comes of it, release S with kernsamples_end(). S may not be moved. */
int kernsamples_begin(struct kernsamples *s, struct kernpeek *peek, struct err *e);
void kernsamples_end(struct kernsamples *s);

#endif
