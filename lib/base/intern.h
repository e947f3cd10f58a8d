/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * intern - dense ids for byte strings, and small numbers for 128-bit keys.
 */
#ifndef STACKTOOLS_BASE_INTERN_H
#define STACKTOOLS_BASE_INTERN_H

#include "base/hashtable.h"

/*
 * intern - a set of byte strings: each distinct string is stored once and has
 * an id, 0, 1, 2 ... in order of arrival.
 *
 * Strings may hold any byte. Equality is by content; the hash only finds the
 * slot. A pointer from intern_text() is valid until intern_reset().
 */

#define INTERN_NONE UINT32_MAX

struct intern_entry {
	const char *text;
	size_t len;
};

struct intern {
	uint64_t seed; /* for hash_bytes(); set it before the first use */
	struct intern_entry *entries; /* index = id */
	size_t n, cap;
	struct hashtable table;
	struct intern_chunk *chunks; /* the bytes of the strings, newest chunk first */
	size_t bytes; /* capacity of all chunks */
};

/* The hash to pass to intern_find() and intern_add(). */
uint64_t intern_hash(const struct intern *t, const void *p, size_t len);

/* The id of the LEN bytes at P, or INTERN_NONE. */
uint32_t intern_find(const struct intern *t, const void *p, size_t len, uint64_t hash);

/* A new id for bytes that intern_find() did not find; INTERN_NONE when memory or ids run out. */
uint32_t intern_add(struct intern *t, const void *p, size_t len, uint64_t hash);

/* Find or add: the id of the bytes; INTERN_NONE when memory or ids run out. */
uint32_t intern_put(struct intern *t, const void *p, size_t len);

static inline const char *intern_text(const struct intern *t, uint32_t id, size_t *len)
{
	*len = t->entries[id].len;
	return t->entries[id].text;
}

void intern_reset(struct intern *t); /* removes all strings; ids start again from 0 */
void intern_free(struct intern *t); /* releases the strings, not T itself; a zeroed T is fine */

/*
 * idmap - a hash map from 128-bit keys to small numbers.
 *
 * No deletion. Keys are mixed before use, so keys may be plain addresses or counters.
 */

struct idmap_slot {
	uint64_t hi, lo;
	uint32_t value;
};

struct idmap {
	struct idmap_slot *slots; /* in order of insertion */
	size_t n, cap;
	struct hashtable table;
};

/*
 * The value of (HI, LO). If there is none, stores VALUE. *ADDED (may be NULL)
 * says whether VALUE was stored. UINT32_MAX when memory runs out.
 */
uint32_t idmap_put(struct idmap *m, uint64_t hi, uint64_t lo, uint32_t value, bool *added);

/* The slot of (HI, LO) or NULL; its value may be changed. Valid until the next put. */
struct idmap_slot *idmap_find(const struct idmap *m, uint64_t hi, uint64_t lo);

size_t idmap_bytes(const struct idmap *m); /* memory used */
void idmap_free(struct idmap *m); /* a zeroed map is an empty one */

#endif
