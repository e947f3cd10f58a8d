/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/base.h"

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

int base_read(int fd, size_t max, char **ret, size_t *len)
{
	_cleanup_free_ char *data = NULL;
	size_t cap = 0, used = 0;
	ssize_t n;

	do {
		if (base_grow(&data, &cap, used + 4096, 1) != 0)
			return -ENOMEM;
		n = read(fd, data + used, cap - used - 1);
		if (n < 0 && errno != EINTR)
			return -errno;
		used += n < 0 ? 0 : (size_t)n;
		if (used > max)
			return -EFBIG;
	} while (n);
	data[used] = '\0';
	*len = used;
	*ret = TAKE_PTR(data);
	return 0;
}
