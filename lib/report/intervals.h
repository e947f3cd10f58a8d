/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * intervals - the waits of a recording in intervals of time.
 *
 * A wait that is longer than an interval gives each interval its part, to the nanosecond. It is counted, with
 * its whole length, in the one in which it begins.
 */
#ifndef STACKTOOLS_REPORT_INTERVALS_H
#define STACKTOOLS_REPORT_INTERVALS_H

#include "report/ranking.h"

#define INTERVALS_MAX 100000 /* intervals */

struct interval {
	wait_sum total; /* time in it */
	wait_sum blocked, runnable; /* its known parts */
	uint64_t count; /* waits that begin in it, */
	wait_sum len_ns; /* their lengths */
	uint64_t max_ns; /* and the longest */
	wait_sum greatest; /* time in the place that has most of TOTAL: */
	uint32_t path, kind; /* an index, WAITS_NONE if there is no wait, and a string */
};

struct intervals {
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t interval_ns;
	struct interval *p; /* in order */
	size_t n;
};

/*
 * Of the waits that R, made with its rows, ranks. -ERANGE with a hint if there would be too many intervals,
 * or -ENOMEM. Release with intervals_free().
 */
int intervals_make(struct intervals *t, const struct waits *w, const struct ranking *r, uint64_t interval_ns,
	struct err *e);
void intervals_free(struct intervals *t); /* a zeroed one is fine */

#endif
