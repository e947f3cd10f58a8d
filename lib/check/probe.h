/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probe - trying things for real, in a child process and within time limits.
 *
 * Whatever a probe does (block, crash, raise a limit, load a program), the
 * caller is not touched by it: the child has its own descriptors and prints
 * nothing, and it is killed when the time is over or the caller is gone.
 */
#ifndef STACKTOOLS_CHECK_PROBE_H
#define STACKTOOLS_CHECK_PROBE_H

#include "base/err.h"

/*
 * One attempt: 0 with what was found in FOUND (CAP bytes), or -errno with the
 * message. Runs in the child; may leak, for the child ends.
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

/* Attempts that have something in common. CTX is the caller's; a child has a copy of what it points to. */
struct probe_job {
	size_t n;
	/*
	 * In the child, before the first attempt: become somebody else, say.
	 * Where it fails, its message is that of every attempt. NULL = nothing.
	 */
	int (*enter)(void *ctx, struct err *e);
	int (*attempt)(void *ctx, size_t i, char *found, size_t cap, struct err *e); /* as a probe_fn */
	void *ctx;
	/*
	 * Where one attempt blocks or ends its child, another child tries those
	 * after it, and CTX has to live until probe_finish(). Else they end like that one.
	 */
	bool go_on;
	unsigned int limit_ms; /* for each of them */
	unsigned int total_ms; /* for all of them; 0 = no such limit */
};

struct probe_run;

/*
 * The limit here for what takes ORDINARY_MS at most on an ordinary machine: as
 * much, or more where a fixed piece of work takes longer (an emulated or
 * crowded machine), up to sixty times as much. It takes some milliseconds to find out.
 */
unsigned int probe_limit_ms(unsigned int ordinary_ms);

/* Start JOB in one child. On success end *RET with probe_finish(). */
int probe_start_job(const struct probe_job *job, struct probe_run **ret, struct err *e);

/*
 * Start the N probes of LIST, one after the other, each with LIMIT_MS. On
 * success end *RET with probe_finish(); LIST has to live until then.
 */
int probe_start(const probe_fn *list, size_t n, unsigned int limit_ms, struct probe_run **ret, struct err *e);

/* Wait for the end or the limits, fill N results, free RUN. RUN NULL: nothing. */
void probe_finish(struct probe_run *run, struct probe_result *results);

#endif
