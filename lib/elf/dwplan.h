/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwplan - which units are to be read for which addresses.
 *
 * By the ranges that each unit's first entry tells.
 */
#ifndef STACKTOOLS_DWPLAN_H
#define STACKTOOLS_DWPLAN_H

#include "elf/dwrange.h"

/* Addresses FROM to TO, not including TO, lie in UNIT (index among the units). */
struct dwplan_part {
	uint32_t unit, from, to;
};

struct dwplan {
	struct dwplan_part *parts; /* by unit, then by address; those of a unit do not overlap */
	size_t n_parts, parts_cap;
	uint32_t *open; /* units that may hold functions but do not tell where */
	size_t n_open, open_cap;
	uint32_t *covers; /* for each address: how many units it lies in */
	uint64_t covers_left; /* their sum is bounded */
	struct dwspans spans;
	bool skeleton; /* the unit at hand is one */
};

/* Below the first section of code there is none. */
uint64_t dwplan_lowest(const struct elffile *f);

/*
 * Plan for N addresses (ascending). LOWEST: ranges that begin below are no
 * code of this file. A unit whose first entry is malformed is left out, the
 * first such story is in E and *BAD counts them. 0 or -ENOMEM.
 */
int dwplan_make(struct dwplan *p, struct dwinfo *d, uint64_t lowest, const uint64_t *vaddrs, size_t n,
	uint64_t *bad, struct err *e);
void dwplan_free(struct dwplan *p); /* a zeroed one is fine */

#endif
