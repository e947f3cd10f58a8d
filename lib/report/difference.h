/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * difference - two recordings, place by place: what waits longer or shorter than before.
 *
 * Rows are matched by name. What is set aside on one side alone and ranked on the other is compared, not
 * taken for gone; where one side knows no kinds, places are compared whatever their kinds.
 *
 * The change of a row is measured in its standard errors. There are only sums, so two estimates of
 * the variation are made, and the one in which the change counts less decides:
 *
 *   waits     They come at random, independently (Poisson), so the variance of their sum is the sum of
 *             their squares, Q, of which wait_stats->squares is a bound. In time of each second, for
 *             recordings of A and B seconds: Qa/A^2 + Qb/B^2; or, if that is more, with the rate that
 *             both have in common: (Qa+Qb)/(A+B) * (1/A+1/B), without which no wait would mean no error.
 *   threads   At least 3 on each side: n * s^2, where s^2 is the variance of the totals of n threads;
 *             by Welch's test, whose t is turned into as many standard errors of a normal
 *             distribution as have its probability (Wallace 1959), for 3 threads say little.
 */
#ifndef STACKTOOLS_REPORT_DIFFERENCE_H
#define STACKTOOLS_REPORT_DIFFERENCE_H

#include "base/out.h"
#include "report/ranking.h"

enum { DIFFERENCE_BEFORE, DIFFERENCE_AFTER, DIFFERENCE_SIDES };

#define DIFFERENCE_SIGNIFICANT 3.0 /* standard errors */
#define DIFFERENCE_THREADS 3 /* at least, for their variation */

/* How sums become amounts. */
struct difference_scale {
	bool by_time; /* they are of a time: else they stay as they are */
	uint64_t of_ns; /* of which time: a second, or a recording's */
	uint64_t elapsed_ns[DIFFERENCE_SIDES];
	uint32_t parts; /* amounts are multiples of 1/PARTS */
};

/* V of SIDE as an amount, rounded, at most 2^126. */
wait_sum difference_amount(const struct difference_scale *s, int side, wait_sum v);

struct difference_row {
	const struct ranking_group *group[DIFFERENCE_SIDES]; /* NULL: it does not occur there */
	wait_sum amount[DIFFERENCE_SIDES];
	bool is_judged; /* else ERRORS means nothing */
	double errors; /* the change in standard errors, with its sign */
	uint32_t name;
};

struct difference_opts {
	enum ranking_by by; /* not of threads or processes by ID */
	bool idle; /* compare places of kind idle too */
	bool absolute; /* do not divide by the recordings' times */
	const char *kinds; /* NULL = all */
};

struct difference {
	const struct waits *waits[DIFFERENCE_SIDES];
	struct ranking ranking[DIFFERENCE_SIDES];
	struct difference_scale scale;
	bool any_kind; /* one side alone has kinds, which are ignored */
	struct difference_row *rows; /* the greatest change first */
	size_t n, cap;
	struct intern names; /* for comparison */
};

/*
 * Both of WAITS must be times, or both not. Release with difference_free(), also after an error. 0,
 * -ENOENT if no wait is of OPTS->kinds, or -ENOMEM.
 */
int difference_make(struct difference *d, const struct waits *const waits[DIFFERENCE_SIDES],
	const struct difference_opts *opts, struct err *e);
void difference_free(struct difference *d); /* a zeroed one is fine */

bool difference_is_significant(const struct difference_row *r);

enum difference_format { DIFFERENCE_TABLE, DIFFERENCE_TSV, DIFFERENCE_JSON };

struct difference_print {
	enum difference_format format;
	enum ranking_by by;
	size_t top; /* rows to print; 0 = all */
	size_t width; /* columns of the table */
	const char *const *paths; /* of the sides */
	bool absolute; /* by request */
};

/* 0 or -ENOMEM; out_flush() reports failed writes. */
int difference_print(
	struct out *o, const struct difference_print *p, const struct difference *d, struct err *e);

/* Lines "STACK BEFORE AFTER", sorted, of stacks that occur on a side, as difffolded.pl prints them. */
int difference_fold(struct out *o, const struct waits_stacks *const stacks[DIFFERENCE_SIDES],
	const struct difference_scale *scale, struct err *e);

#endif
