/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bodycache - what the text between a header and its blank line was found to
 * mean, so that it is taken apart once. Floor 3.
 *
 * Bodies are known by their bytes: a hit is exact. Bounded: up to half of
 * BODYCACHE_MAX bytes every body is kept, then only those that come a second
 * time, and a full cache starts afresh.
 */
#ifndef STACKTOOLS_BODYCACHE_H
#define STACKTOOLS_BODYCACHE_H

#include "err.h"
#include "intern.h"

#define BODYCACHE_MAX ((size_t)32 << 20)

struct bodycache_value {
	uint32_t stack; /* id in the table of stacks */
	uint32_t bad; /* lines that are no frames */
	uint32_t name; /* whose it was the last time, and */
	uint32_t pair; /* that pair's index in the table */
};

struct bodycache {
	struct intern bodies;
	struct bodycache_value *values; /* index = id */
	size_t cap;
	uint32_t *seen; /* hashes of bodies that came and were not kept */
};

/* 0 or -ENOMEM. Release with bodycache_free(). */
int bodycache_init(struct bodycache *c, uint64_t seed, struct err *e);
void bodycache_free(struct bodycache *c); /* a zeroed one is fine */

/* The value, the cache's own and to be changed in place, or NULL. *HASH is for bodycache_keep(). */
struct bodycache_value *bodycache_find(
	const struct bodycache *c, const char *body, size_t len, uint64_t *hash);

/* Keep *V for a body that was not found, or do not. 0 or -ENOMEM. */
int bodycache_keep(struct bodycache *c, const char *body, size_t len, uint64_t hash,
	const struct bodycache_value *v, struct err *e);

#endif
