/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probe - attempts in a child process, with time limits.
 *
 * Nothing that a probe does (block, crash, raise a limit, load a program)
 * affects the caller: the child has its own descriptors and prints nothing, and
 * it is killed when its time is over or the caller has ended.
 */
#ifndef STACKTOOLS_CHECK_PROBE_H
#define STACKTOOLS_CHECK_PROBE_H

#include "base/err.h"

/*
 * One attempt: 0 with what was found in FOUND (CAP bytes), or -errno with the
 * message. Runs in the child; may leak, as the child ends.
 */
typedef int (*probe_fn)(char *found, size_t cap, struct err *e);

/* What our programs rely on; other probes can be passed to probe_start() too. */
int probe_stack_map(char *found, size_t cap, struct err *e); /* create one of at most 127 frames */

/* Attach a program, and take both stacks of a thread that sleeps. */
int probe_take_stack(char *found, size_t cap, struct err *e);

/* Open perf dummy events with mmap, comm and task records on every CPU. */
int probe_process_events(char *found, size_t cap, struct err *e);

struct probe_result {
	int code; /* 0, or -errno; -ETIMEDOUT if its time was over */
	char found[256]; /* if code is 0 */
	struct err err; /* if it is not */
};

/* Attempts that share something. CTX is the caller's; a child has a copy of what it points to. */
struct probe_job {
	size_t n;
	/*
	 * Runs in the child before the first attempt, to change user for example.
	 * If it fails, its error is the result of every attempt. NULL = none.
	 */
	int (*enter)(void *ctx, struct err *e);
	int (*attempt)(void *ctx, size_t i, char *found, size_t cap, struct err *e); /* as probe_fn */
	void *ctx;
	/*
	 * If an attempt blocks or ends its child, another child does those after
	 * it; CTX must live until probe_finish(). False: they get the same result.
	 */
	bool go_on;
	unsigned int limit_ms; /* for each attempt */
	unsigned int total_ms; /* for all attempts; 0 = no limit */
};

struct probe_run;

/*
 * The limit on this machine for what takes at most ORDINARY_MS on an ordinary
 * one: longer, up to 60 times, if a fixed piece of work takes longer (emulated or
 * overloaded machine). That measurement takes some milliseconds.
 */
unsigned int probe_limit_ms(unsigned int ordinary_ms);

/* Start JOB in one child. On success release *RET with probe_finish(). */
int probe_start_job(const struct probe_job *job, struct probe_run **ret, struct err *e);

/*
 * Start the N probes of LIST, one after the other, each with LIMIT_MS. On
 * success release *RET with probe_finish(); LIST must live until then.
 */
int probe_start(const probe_fn *list, size_t n, unsigned int limit_ms, struct probe_run **ret, struct err *e);

/*
 * Wait until all have ended or reached their limits, fill N results, free RUN.
 * RESULTS NULL: end the child without waiting for it. RUN NULL: does nothing.
 */
void probe_finish(struct probe_run *run, struct probe_result *results);

#endif
