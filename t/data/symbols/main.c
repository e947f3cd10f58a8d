/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "calls.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return doubled(x->weight, 9) - doubled(y->weight, 9);
}

static int fill(struct item *items, int n)
{
	for (int i = 0; i < n; i++) {
		items[i].weight = clamp(n - i, 7) * i;
		items[i].next = i ? &items[i - 1] : NULL;
	}
	qsort(items, (size_t)n, sizeof(*items), compare);
	return n;
}

int main(int argc, char *argv[])
{
	struct item items[8];
	int n = fill(items, 8);

	(void)argv;
	for (int i = 0; i < n; i++)
		n += chosen(i, argc) > 100;
	return weigh(items + n - 1, argc) > 100;
}
