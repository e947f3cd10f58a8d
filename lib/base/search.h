/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * search - an array sorted by key, with the last element of each key alone.
 *
 * For records of which a later one replaces an earlier: the array is in the
 * order in which they came.
 */
#ifndef STACKTOOLS_BASE_SEARCH_H
#define STACKTOOLS_BASE_SEARCH_H

#include "base/base.h"

/*
 * ARRAY is the address of a pointer to *N elements of SIZE bytes from malloc(3); it is replaced by
 * another such array, and *N by what is left. 0, or -ENOMEM with both as they were.
 */
int sortlast(void *array, size_t *n, size_t size, int (*cmp)(const void *a, const void *b));

#endif
