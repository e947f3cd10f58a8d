/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table - distinct stacks and their sums, and the folded lines made from them.
 *
 * A line is a process name and its frames. Each name and each stack is stored once, so memory grows
 * with the number of distinct ones. Sums are exact: 128 bits hold more than 2^64 records of the
 * largest period.
 */
#ifndef STACKTOOLS_FOLD_TABLE_H
#define STACKTOOLS_FOLD_TABLE_H

#include "base/err.h"
#include "base/intern.h"

typedef unsigned __int128 foldtab_sum;

struct foldtab_pair {
	uint32_t name, stack;
	foldtab_sum sum;
};

struct foldtab {
	struct intern names; /* "comm" */
	struct intern stacks; /* ";outermost;...;innermost", "" = no frames */
	struct foldtab_pair *pairs;
	size_t n, cap;
	struct hashtable by_pair;
};

/* SEED is for the hashes of both tables. */
void foldtab_init(struct foldtab *t, uint64_t seed);
void foldtab_free(struct foldtab *t); /* a zeroed one is fine */

#define FOLDTAB_NONE UINT32_MAX

/*
 * The index in t->pairs of (NAME, STACK), ids of the two tables; a new pair's
 * sum is 0. FOLDTAB_NONE when memory or indexes run out.
 */
uint32_t foldtab_pair(struct foldtab *t, uint32_t name, uint32_t stack);

/* Prefetch the pair at INDEX, if it exists, before adding to it. */
static inline void foldtab_prefetch(const struct foldtab *t, uint32_t index)
{
	if (index < t->n)
		__builtin_prefetch(&t->pairs[index], 1);
}

struct foldtab_line {
	struct foldtab_sum_text {
		const char *p;
		size_t len;
	} part[2]; /* concatenated, they are the line */
	foldtab_sum sum; /* exact */
	foldtab_sum value; /* to print: sum / divide, rounded to nearest, halves up */
};

struct foldtab_query {
	uint64_t divide; /* 0 means 1 */
	foldtab_sum min; /* drop lines with a smaller sum */
	size_t top; /* keep only the TOP largest; equal ones in line order; 0 = all */
	bool reverse; /* innermost frame first, the name last; the table must be filled that way */
};

struct foldtab_lines {
	struct foldtab_line *lines;
	size_t n;
	size_t vanished; /* dropped because the value rounds to 0 although the sum is not 0 */
};

/*
 * The lines of the table, each distinct text once, in the order of LC_ALL=C sort(1). They point
 * into the table. Release ret->lines with free(3).
 */
int foldtab_lines(
	const struct foldtab *t, const struct foldtab_query *q, struct foldtab_lines *ret, struct err *e);

/* Print V in decimal into BUF, not terminated; returns the length. */
size_t foldtab_digits(foldtab_sum v, char buf[40]);

#endif
