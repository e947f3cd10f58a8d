/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ranking - waits grouped as requested, the greatest first.
 *
 * A place is the waits of one path (user functions and system call) and one kind, of all threads. Two
 * sorts of places are set aside unless requested: those of kind "idle", whose threads wait for work, and
 * those where each thread waited once, from the beginning of the recording to its end, such as main's
 * for the other threads. The latter not if something is in their way, such as a lock.
 */
#ifndef STACKTOOLS_REPORT_RANKING_H
#define STACKTOOLS_REPORT_RANKING_H

#include "report/waits.h"

enum ranking_by {
	RANKING_STACK,
	RANKING_FUNCTION,
	RANKING_THREAD,
	RANKING_PROCESS,
	RANKING_KIND,
	RANKING_MODULE,
	RANKING_STATE,
	RANKING_WAKER,
	/* by name alone, so that recordings can be compared */
	RANKING_THREAD_NAME,
	RANKING_PROCESS_NAME,
};

struct ranking_opts {
	enum ranking_by by;
	bool idle; /* rank places of kind idle too */
	bool all; /* set nothing aside */
	const char *kinds; /* only these, separated by commas; NULL = all */
	bool any_kind; /* places of one path are one, whatever their kinds */
	bool by_last; /* the greatest time since the flush before is first */
	bool members; /* keep the threads of groups, too */
	bool rows; /* keep which rows are ranked, too */
	/* A place that waited once, all the time, is ranked all the same if this says so; NULL = none is. */
	bool (*rank_once)(void *ctx, const struct waits *w, uint32_t path, uint32_t kind);
	void *ctx;
};

/* What a thread has of a group. */
struct ranking_member {
	uint32_t group; /* while grouping */
	uint32_t thread; /* index */
	wait_sum total;
};

struct ranking_group {
	uint32_t key; /* index of a path, thread or process, or a string */
	uint32_t kind; /* string; of a place. Of a thread its name at that time: each has a group */
	bool is_call; /* a callee: KEY is a system call, not a function */
	struct wait_stats stats;
	struct wait_last last;
	wait_sum self; /* functions: where it is the innermost one */
	uint64_t p99_ns; /* 99 of 100 waits are not longer */
	bool has_p99; /* known only where each wait is known by itself */
	size_t threads; /* distinct ones */
	size_t first_member; /* of THREADS in ranking->members */
};

/* A row with single waits, in a group. */
struct ranking_use {
	uint32_t group;
	const struct wait_row *row;
};

struct ranking_groups {
	struct ranking_group *p;
	size_t n, cap;
	struct idmap by_key;
	const struct waits *of; /* NULL: no percentiles are wanted */
	struct ranking_use *uses;
	size_t n_uses, max_uses;
};

struct ranking_rest {
	struct wait_stats stats;
	size_t places, threads;
};

struct ranking {
	struct wait_stats all; /* of the kinds that were selected */
	size_t n_threads, n_processes; /* of these */
	wait_sum idle; /* of kind idle */
	wait_sum blocked, runnable; /* of the others: known parts of their time */
	struct ranking_groups groups; /* ranked, the greatest first */
	struct ranking_member *members; /* NULL unless requested */
	bool *row_is_ranked; /* by index of waits->rows; NULL unless requested */
	wait_sum ranked; /* their time, each wait once */
	struct wait_last last, ranked_last; /* of all and ranked ones, since the flush before */
	struct ranking_rest set_aside_idle, set_aside_once;
};

/* Release with ranking_free(), also after an error. 0, or -ENOENT if no wait is of OPTS->kinds, or -ENOMEM.
 */
int ranking_make(struct ranking *r, const struct waits *w, const struct ranking_opts *opts, struct err *e);
void ranking_free(struct ranking *r); /* a zeroed one is fine */

/* The waits below and above a function; what OPTS sets aside is included. */
struct ranking_function {
	struct wait_stats total;
	wait_sum self;
	size_t threads;
	struct ranking_groups callers, callees; /* a caller with key 0: there is none */
};

/* 0, -ENOENT with a hint if no stack has the function NAME, or as ranking_make(). */
int ranking_function(struct ranking_function *r, const struct waits *w, const struct ranking_opts *opts,
	const char *name, struct err *e);
void ranking_function_free(struct ranking_function *r);

#endif
