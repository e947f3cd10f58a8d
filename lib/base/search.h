/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * search - searching sorted arrays, and sorting them.
 */
#ifndef STACKTOOLS_BASE_SEARCH_H
#define STACKTOOLS_BASE_SEARCH_H

#include "base/base.h"

/*
 * The first index MID of FROM to TO - 1 for which BELOW is false; TO where it
 * is true for all. BELOW, an expression of MID, has to be true for some first
 * elements and false for all that follow. O(log n).
 */
#define PARTITION_POINT(from, to, mid, below)                                                                \
	({                                                                                                   \
		size_t pp_low = (from), pp_high = (to);                                                      \
                                                                                                             \
		while (pp_low < pp_high) {                                                                   \
			const size_t mid = pp_low + (pp_high - pp_low) / 2;                                  \
                                                                                                             \
			if (below)                                                                           \
				pp_low = mid + 1;                                                            \
			else                                                                                 \
				pp_high = mid;                                                               \
		}                                                                                            \
		pp_low;                                                                                      \
	})

/*
 * Sort by key, and keep the last element of each key alone: for records of
 * which a later one replaces an earlier, in the order in which they came.
 * ARRAY is the address of a pointer to *N elements of SIZE bytes from malloc(3); it is replaced by
 * another such array, and *N by what is left. 0, or -ENOMEM with both as they were.
 */
int sortlast(void *array, size_t *n, size_t size, int (*cmp)(const void *a, const void *b));

#endif
