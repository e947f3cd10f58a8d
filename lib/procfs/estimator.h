/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * estimator - the waits of a thread, estimated from samples of it.
 *
 * Between two samples, by the nanoseconds of schedstat, a thread was off the CPU
 * for
 *
 *   elapsed - run - delay
 *
 * and began as many waits as it made voluntary context switches. How much of that
 * time belongs to which wait is unknown. So equal shares go to the rest of the
 * wait seen at the first sample, to the waits in between, and to the beginning of
 * the wait seen at the second sample. Of the waits that no sample saw, half are
 * attributed to the place seen before them and half to the place seen after; all
 * to one if the other is missing; if both are missing, to no place.
 *
 * The account of a running thread lags: run by a tick, delay until the thread is
 * given a CPU. So the time that a sample of a running thread finds is handed out
 * only as far as it exceeds the largest possible lag; the rest is carried on to
 * the next sample. Nothing is made up: the sum of all waits never exceeds the
 * account.
 *
 * Without schedstat, a thread that was waiting at both samples counts as off the
 * CPU for all the time between them, and one that was waiting at one of them for
 * half of it.
 *
 * Pure: reads no clock and no files.
 */
#ifndef STACKTOOLS_PROCFS_ESTIMATOR_H
#define STACKTOOLS_PROCFS_ESTIMATOR_H

#include "base/base.h"

/* Where a thread waits, in numbers of the caller. */
struct estimator_place {
	uint64_t kernel[2], user[2]; /* identities of the stacks */
	uint32_t state; /* prev_state bits */
};

struct estimator_sample {
	uint64_t at_ns;
	bool has_account; /* there is schedstat: run_ns, delay_ns and slices are valid */
	uint64_t run_ns, delay_ns, slices;
	uint64_t voluntary; /* context switches */
	bool same; /* has not run since the last sample: waiting and place are as they were */
	bool waiting;
	struct estimator_place place; /* if waiting */
};

/* Waits that are over, or still open at the end of the recording. */
struct estimator_done {
	const struct estimator_place *place; /* NULL = no sample saw them */
	uint64_t total_ns, count, max_ns;
	uint64_t first_ns, last_ns; /* when they began */
	bool open, initial;
};

struct estimator_sink {
	void *ctx;
	void (*done)(void *ctx, const struct estimator_done *d);
	/* Runnable, but without a CPU, COUNT times for NS in total, until UNTIL_NS. */
	void (*delayed)(void *ctx, uint64_t count, uint64_t ns, uint64_t until_ns);
};

/* One thread. A zeroed one was never sampled. */
struct estimator {
	bool begun;
	bool waiting; /* at the last sample */
	bool current; /* there is a wait that has not been handed out: */
	bool initial;
	struct estimator_place place;
	uint64_t began_ns, wait_ns;
	/* of the first sample, or of the last estimator_life() */
	struct {
		bool has_account;
		uint64_t at_ns, run_ns, delay_ns;
	} since;
	/* of the last sample */
	bool has_account;
	uint64_t at_ns, run_ns, delay_ns, slices, voluntary;
	int64_t carried_ns; /* off the CPU, and not given to a wait yet; negative if the account lagged */
	uint64_t carried; /* waits that began and have not been handed out yet */
};

/* Sums over all threads, for comparison. */
struct estimator_sums {
	uint64_t estimated_ns; /* off the CPU, by the samples alone */
	uint64_t schedstat_ns; /* elapsed - run - delay */
	uint64_t unsettled_ns; /* of the latter, not given to a wait by the end */
};

/*
 * The thread is new: it began at BEGAN_NS and had done nothing then. Do not call
 * this for a thread that existed before the recording.
 */
void estimator_born(struct estimator *w, uint64_t began_ns);

void estimator_sample(struct estimator *w, const struct estimator_sample *now,
	const struct estimator_sink *sink, struct estimator_sums *sums);

/*
 * The recorder itself made the thread run since the last sample, and the thread
 * waits on in the same place: treat LOOK as if the thread had not run.
 */
void estimator_disturbed(
	struct estimator *w, const struct estimator_sample *now, struct estimator_sums *sums);

/*
 * The last sample found another program in the thread's process. A wait that this
 * sample could not end, because the thread was running, is handed out now, with
 * the time carried on: the program that waited is gone. If the account lagged,
 * the next wait is shorter by that.
 */
void estimator_exec(struct estimator *w, const struct estimator_sink *sink);

/* What a thread did from one sample to another, by the account. */
struct estimator_life {
	uint64_t from_ns, to_ns;
	uint64_t run_ns, delay_ns; /* of that time: on a CPU; waiting for one */
};

/*
 * What the thread did from its first sample, or from the last call of this, up to the last sample. False if
 * there is no account of that, or it is another thread's by now.
 */
bool estimator_life(struct estimator *w, struct estimator_life *ret);

/*
 * The thread or (OPEN) the recording has ended: hand out what is left. Nothing is
 * known about the time after the last sample.
 */
void estimator_end(
	struct estimator *w, bool open, const struct estimator_sink *sink, struct estimator_sums *sums);

#endif
