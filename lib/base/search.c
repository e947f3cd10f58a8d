/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/search.h"

#include <errno.h>
#include <string.h>

struct order {
	int (*cmp)(const void *a, const void *b);
};

/* Compares pointers into the array, so that equal elements keep their order. */
static int by_order(const void *a, const void *b, void *order)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	int c = ((const struct order *)order)->cmp(x, y);

	return c ? c : CMP(x, y);
}

int sortlast(void *array, size_t *n, size_t size, int (*cmp)(const void *a, const void *b))
{
	char **base = array, *sorted = calloc(*n + 1, size);
	_cleanup_free_ const char **p = calloc(*n + 1, sizeof(const char *));
	struct order order = { cmp };
	size_t kept = 0;

	if (!sorted || !p) {
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < *n; i++)
		p[i] = *base + i * size;
	qsort_r(p, *n, sizeof(*p), by_order, &order);
	for (size_t i = 0; i < *n; i++)
		if (i + 1 == *n || cmp(p[i], p[i + 1]) != 0)
			memcpy(sorted + kept++ * size, p[i], size);
	free(*base);
	*base = sorted;
	*n = kept;
	return 0;
}
