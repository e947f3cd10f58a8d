/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sharedarray - an array map whose values are mapped here: written and read
 * in place on both sides.
 */
#ifndef STACKTOOLS_SHAREDARRAY_H
#define STACKTOOLS_SHAREDARRAY_H

#include "base/err.h"

struct sharedarray {
	int fd;
	void *p; /* the values, each at a multiple of its size; NULL = not open */
	size_t bytes; /* that are mapped */
};

/* N values of SIZE bytes, a multiple of 8, all zero. Release with sharedarray_close(). */
int sharedarray_open(struct sharedarray *a, const char *name, size_t size, uint32_t n, struct err *e);
void sharedarray_close(struct sharedarray *a); /* a zeroed one is fine */

/* What the kernel holds for such an array: whole pages, and one of its own. */
uint64_t sharedarray_bytes(size_t size, uint32_t n);

#endif
