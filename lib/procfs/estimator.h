/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * estimator - from looks at a thread to its waits.
 *
 * Between two looks a thread was off the CPU for
 *
 *   elapsed - run - delay
 *
 * by the nanoseconds of schedstat, and began as many waits as it made voluntary
 * context switches. Which part of that belongs to which wait nobody saw; the
 * rest of the wait that was seen at the first look, those in between and the
 * beginning of the one that is seen at the second get equal shares. A wait that
 * nobody saw counts for the place seen before it or after it, in turn; where
 * there is none, for no place.
 *
 * The account of a thread that runs lags: its run by a tick, its delay until it
 * is given a CPU. So what a look at a running thread finds is given away only as
 * far as it is more than such a lag can be, and the rest is carried on. Nothing
 * is made up: the sum of all waits is never more than the account's.
 *
 * Without schedstat a thread counts as off the CPU from one look to the next
 * where it was seen waiting at both, and for half of the time where at one.
 *
 * Pure: no clock, no files.
 */
#ifndef STACKTOOLS_PROCFS_ESTIMATOR_H
#define STACKTOOLS_PROCFS_ESTIMATOR_H

#include "base/base.h"

/* Where a thread waits: the caller's numbers. */
struct estimator_place {
	uint64_t kernel[2], user[2]; /* stacks' identities */
	uint32_t state; /* prev_state bits */
};

struct estimator_sample {
	uint64_t at_ns;
	bool has_account; /* schedstat: run_ns, delay_ns, slices count */
	uint64_t run_ns, delay_ns, slices;
	uint64_t voluntary; /* context switches */
	bool same; /* has not run since the last look: waiting and place are as they were */
	bool waiting;
	struct estimator_place place; /* if waiting */
};

/* Waits that are over, or open at the end. */
struct estimator_done {
	const struct estimator_place *place; /* NULL = they were not seen */
	uint64_t total_ns, count, max_ns;
	uint64_t first_ns, last_ns; /* when they began */
	bool open, initial;
};

struct estimator_sink {
	void *ctx;
	void (*done)(void *ctx, const struct estimator_done *d);
	/* Runnable, but without a CPU, COUNT times for NS together, until UNTIL_NS. */
	void (*delayed)(void *ctx, uint64_t count, uint64_t ns, uint64_t until_ns);
};

/* One thread. A zeroed one was never looked at. */
struct estimator {
	bool begun;
	bool waiting; /* at the last look */
	bool current; /* there is a wait that has not been handed out: */
	bool initial;
	struct estimator_place place;
	uint64_t began_ns, wait_ns;
	/* the last look's */
	bool has_account;
	uint64_t at_ns, run_ns, delay_ns, slices, voluntary;
	int64_t carried_ns; /* off the CPU, and given to no wait yet; negative where the account lagged */
	uint64_t carried; /* waits that began, and were given to nobody yet */
};

/* Sums over all threads, to compare. */
struct estimator_sums {
	uint64_t estimated_ns; /* by what was seen at the looks alone */
	uint64_t schedstat_ns; /* elapsed - run - delay */
	uint64_t unsettled_ns; /* of the latter, given to no wait at the end */
};

/*
 * The thread is new: it began at BEGAN_NS and had done nothing then. Leave it
 * out for one that was there before the recording.
 */
void estimator_born(struct estimator *w, uint64_t began_ns);

void estimator_sample(struct estimator *w, const struct estimator_sample *look,
	const struct estimator_sink *sink, struct estimator_sums *sums);

/*
 * The recorder itself made the thread run since the last look, and it went on
 * waiting where it was: LOOK is as if it had not run.
 */
void estimator_disturbed(
	struct estimator *w, const struct estimator_sample *look, struct estimator_sums *sums);

/*
 * The last look found another program in the thread's process. A wait that this
 * look could not end, because the thread was running, is handed out now, with
 * the time that was carried on: the program that waited is gone. If the account
 * lagged, the next wait is shorter by that.
 */
void estimator_exec(struct estimator *w, const struct estimator_sink *sink);

/* The end, of the thread or (OPEN) of the recording: hand out what is there. Nothing is known past the last
 * look. */
void estimator_end(
	struct estimator *w, bool open, const struct estimator_sink *sink, struct estimator_sums *sums);

#endif
