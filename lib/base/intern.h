/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * intern - dense numbers for byte strings, and small numbers for 128-bit keys.
 */
#ifndef STACKTOOLS_BASE_INTERN_H
#define STACKTOOLS_BASE_INTERN_H

#include "base/hashtable.h"

/*
 * intern - byte strings to dense numbers: each distinct string is kept once
 * and known by its id, 0, 1, 2 ... in order of arrival.
 *
 * Strings may hold any byte. Equality is by content: the hash only finds the
 * place. What intern_text() returns stays where it is until intern_reset().
 */

#define INTERN_NONE UINT32_MAX

struct intern_entry {
	const char *text;
	size_t len;
};

struct intern {
	uint64_t seed; /* of hash_bytes(); set it before the first use */
	struct intern_entry *entries; /* index = id */
	size_t n, cap;
	struct hashtable table;
	struct intern_chunk *chunks; /* where the bytes are, the newest first */
	size_t bytes; /* held in all */
};

/* The hash that intern_find() and intern_add() want. */
uint64_t intern_hash(const struct intern *t, const void *p, size_t len);

/* The id of the LEN bytes at P, or INTERN_NONE. */
uint32_t intern_find(const struct intern *t, const void *p, size_t len, uint64_t hash);

/* A new id for bytes that intern_find() does not know; INTERN_NONE when memory or ids run out. */
uint32_t intern_add(struct intern *t, const void *p, size_t len, uint64_t hash);

/* Both: the id of the bytes, new or not; INTERN_NONE when memory or ids run out. */
uint32_t intern_put(struct intern *t, const void *p, size_t len);

static inline const char *intern_text(const struct intern *t, uint32_t id, size_t *len)
{
	*len = t->entries[id].len;
	return t->entries[id].text;
}

void intern_reset(struct intern *t); /* forgets all strings; ids start again from 0 */
void intern_free(struct intern *t); /* releases what it holds; a zeroed one is fine */

/*
 * idmap - a hash map from 128-bit keys to small numbers.
 *
 * No deletion. Keys are mixed before use, so plain addresses and counters may be keys.
 */

struct idmap_slot {
	uint64_t hi, lo;
	uint32_t value;
};

struct idmap {
	struct idmap_slot *slots; /* in the order in which they came */
	size_t n, cap;
	struct hashtable table;
};

/*
 * The value kept for (HI, LO). When there is none, VALUE is put there and
 * *ADDED (may be NULL) set. UINT32_MAX when memory ran out.
 */
uint32_t idmap_put(struct idmap *m, uint64_t hi, uint64_t lo, uint32_t value, bool *added);

/* The slot of (HI, LO) or NULL; its value may be changed. Valid until the next put. */
struct idmap_slot *idmap_find(const struct idmap *m, uint64_t hi, uint64_t lo);

size_t idmap_bytes(const struct idmap *m); /* memory that it takes */
void idmap_free(struct idmap *m); /* a zeroed one is an empty map */

#endif
