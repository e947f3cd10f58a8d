/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * search - searching sorted arrays, and sorting them.
 */
#ifndef STACKTOOLS_BASE_SEARCH_H
#define STACKTOOLS_BASE_SEARCH_H

#include "base/base.h"

/*
 * The first index MID in FROM to TO - 1 for which BELOW, an expression of MID,
 * is false; TO if it is true for all. BELOW must be true for the elements up to
 * some point and false for all that follow. O(log n).
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
 * Sort by key, and keep only the last element of each key: for records in order
 * of arrival, where a later record replaces an earlier one. ARRAY is the address
 * of a pointer to *N elements of SIZE bytes from malloc(3). The array is freed
 * and replaced by a new one, and *N is set to the number of elements left. 0, or
 * -ENOMEM with both unchanged.
 */
int sortlast(void *array, size_t *n, size_t size, int (*cmp)(const void *a, const void *b));

#endif
