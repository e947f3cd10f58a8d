/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base.h"

#include <errno.h>
#include <string.h>

int base_grow(void *p, size_t *cap, size_t need, size_t size)
{
	void **array = p;
	size_t want = *cap ? *cap : 16;
	char *bigger;

	if (need <= *cap)
		return 0;
	while (want < need) {
		if (want > SIZE_MAX / 2)
			return -ENOMEM;
		want *= 2;
	}
	if (want > SIZE_MAX / size)
		return -ENOMEM;
	bigger = realloc(*array, want * size);
	if (!bigger)
		return -ENOMEM;
	memset(bigger + *cap * size, 0, (want - *cap) * size);
	*array = bigger;
	*cap = want;
	return 0;
}
