/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bodycache - what the text between a header and its blank line was found to
 * mean, so that it is taken apart once.
 *
 * Bodies are known by their bytes: a hit is exact. A guess from a few of the
 * bytes says early which body it may be, so that its memory is under way before
 * the comparison, and a right guess saves the hash. Bounded: up to half of
 * BODYCACHE_MAX bytes every body is kept, then only those that come a second
 * time, and a full cache starts afresh.
 */
#ifndef STACKTOOLS_BODYCACHE_H
#define STACKTOOLS_BODYCACHE_H

#include "base/err.h"
#include "base/intern.h"

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
	uint32_t *guesses; /* by a few bytes of a body: the id that it had last, plus one */
};

/* 0 or -ENOMEM. Release with bodycache_free(). */
int bodycache_init(struct bodycache *c, uint64_t seed, struct err *e);
void bodycache_free(struct bodycache *c); /* a zeroed one is fine */

/* What is known of a body that is looked for. */
struct bodycache_key {
	const char *body;
	size_t len;
	uint64_t hash; /* 0 until bodycache_find() needed it */
	uint32_t guess; /* where in the guesses it is */
};

/* The key of BODY; what it may be equal to is fetched towards the processor. */
struct bodycache_key bodycache_expect(const struct bodycache *c, const char *body, size_t len);

/* The value, the cache's own and to be changed in place, or NULL. */
struct bodycache_value *bodycache_find(struct bodycache *c, struct bodycache_key *k);

/* Keep *V for a body that was not found, or do not. 0 or -ENOMEM. */
int bodycache_keep(
	struct bodycache *c, const struct bodycache_key *k, const struct bodycache_value *v, struct err *e);

#endif
