/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probe - trying things for real, in a child process and within a time limit.
 * Floor 4.
 *
 * Whatever a probe does (block, crash, raise a limit, load a program), the
 * caller is not touched by it: the child has its own descriptors and prints
 * nothing, and it is killed when the time is over or the caller is gone.
 */
#ifndef STACKTOOLS_PROBE_H
#define STACKTOOLS_PROBE_H

#include "err.h"

/*
 * One attempt: 0 with what was found in FOUND (CAP bytes), or -errno with the
 * story. Runs in the child; may leak, for the child ends.
 */
typedef int (*probe_fn)(char *found, size_t cap, struct err *e);

/* What our programs rely on; more can be passed to probe_start(). */
int probe_stack_map(char *found, size_t cap, struct err *e); /* create one of 127 frames */
/* Attach a program, and get both stacks of a thread that sleeps. */
int probe_take_stack(char *found, size_t cap, struct err *e);
/* perf dummy events with mmap, comm and task records on every CPU */
int probe_process_events(char *found, size_t cap, struct err *e);

struct probe_result {
	int code; /* 0, or -errno; -ETIMEDOUT when it was not over in time */
	char found[256]; /* where code is 0 */
	struct err err; /* where it is not */
};

/* Attempts that have something in common. CTX is the caller's; the child has a copy of what it points to. */
struct probe_job {
	size_t n;
	/*
	 * In the child, before the first attempt: become somebody else, say.
	 * Where it fails, its story is that of every attempt. NULL = nothing.
	 */
	int (*enter)(void *ctx, struct err *e);
	int (*attempt)(void *ctx, size_t i, char *found, size_t cap, struct err *e); /* as a probe_fn */
	void *ctx;
	unsigned int limit_ms; /* for all of them */
};

struct probe_run;

/* Start JOB in one child. On success end *RET with probe_finish(). */
int probe_start_job(const struct probe_job *job, struct probe_run **ret, struct err *e);

/*
 * Start the N probes of LIST, one after the other in one child, which has
 * LIMIT_MS for all of them. On success end *RET with probe_finish(). LIST is
 * no longer needed.
 */
int probe_start(const probe_fn *list, size_t n, unsigned int limit_ms, struct probe_run **ret, struct err *e);

/* Wait for the end or the limit, fill N results, free RUN. RUN NULL: nothing. */
void probe_finish(struct probe_run *run, struct probe_result *results);

#endif
