/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * intern - byte strings to dense numbers: each distinct string is kept once
 * and known by its id, 0, 1, 2 ... in order of arrival.
 *
 * Strings may hold any byte. Equality is by content: the hash only finds the
 * place. What intern_text() returns stays where it is until intern_reset().
 */
#ifndef STACKTOOLS_INTERN_H
#define STACKTOOLS_INTERN_H

#include "base/base.h"

#define INTERN_NONE UINT32_MAX

struct intern_entry {
	const char *text;
	size_t len;
	uint64_t hash;
};

struct intern {
	uint64_t seed; /* of hash_bytes(); set it before the first use */
	struct intern_entry *entries; /* index = id */
	size_t n, cap;
	struct intern_slot *slots; /* open addressing, a power of two of them */
	size_t n_slots;
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

/*
 * Room for LEN bytes that live as long as the strings do and need no id; NULL
 * when memory runs out.
 */
char *intern_room(struct intern *t, size_t len);

void intern_reset(struct intern *t); /* forgets all strings; ids start again from 0 */
void intern_free(struct intern *t); /* releases what it holds; a zeroed one is fine */

#endif
