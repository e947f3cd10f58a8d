/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capstats - sums over a capture: by process, and by how its stacks ended.
 *
 * Sums saturate: a capture may hold any number.
 */
#ifndef STACKTOOLS_CAPSTATS_H
#define STACKTOOLS_CAPSTATS_H

#include "capture/capread.h"

struct capstats_sum {
	uint64_t waits, off_ns, longest_ns;
	uint64_t open; /* of the waits: still going on at the end */
	size_t threads; /* that had a wait or a name */
	size_t stacks; /* distinct pairs of a kernel and a user stack */
};

/* The stacks that ended the same way, and the waits that have one of them. */
struct capstats_group {
	uint8_t kind, verdict, reason;
	int32_t error;
	uint64_t stacks, waits, off_ns;
};

struct capstats {
	struct capstats_sum total, *procs; /* procs: index = id */
	struct capstats_group *groups; /* sorted by kind, verdict, reason, error */
	size_t n_groups;
	uint64_t end_ns; /* the trailer's, else the last flush's, else the beginning */
};

/* 0 or -ENOMEM. Release with capstats_free(). */
int capstats_make(const struct capread *c, struct capstats *ret);
void capstats_free(struct capstats *s);

#endif
