/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capminimal - a smallest set of capabilities with which something works,
 * found by trying.
 *
 * Sets are bit masks, 1 << CAP_x. "Smallest" means that nothing can be taken
 * away: there may be other such sets, of other capabilities. Which one is
 * found follows from the order in which capabilities are taken away.
 */
#ifndef STACKTOOLS_CAPMINIMAL_H
#define STACKTOOLS_CAPMINIMAL_H

#include "base/base.h"

/* Does it work with exactly SET? Asked for the same set more than once. */
typedef bool (*capminimal_fn)(void *ctx, uint64_t set);

/*
 * Take away from FROM what is not needed: first, at one go if that can be,
 * all that is not among the N of ORDER, then those of ORDER one by one, the
 * first first; KEEP stays. False when it does not work with FROM. What *RET
 * gets was tried and worked, and each set that lacks one more was tried and
 * did not.
 */
bool capminimal_find(uint64_t from, uint64_t keep, const int *order, size_t n, capminimal_fn works, void *ctx,
	uint64_t *ret);

#endif
