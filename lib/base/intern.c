/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/intern.h"
#include "base/hash.h"

#include <string.h>
#include <sys/mman.h>

#define CHUNK_MIN 65536
#define CHUNK_HUGE ((size_t)2 << 20)

struct intern_chunk {
	struct intern_chunk *next;
	size_t used, cap;
	char bytes[];
};

uint64_t intern_hash(const struct intern *t, const void *p, size_t len)
{
	return hash_bytes(p, len, t->seed);
}

uint32_t intern_find(const struct intern *t, const void *p, size_t len, uint64_t hash)
{
	return HASHTABLE_FIND(&t->table, hash, id,
		t->entries[id].len == len && (!len || memcmp(t->entries[id].text, p, len) == 0));
}

/* The size grows with HELD, the capacity so far. Big chunks use huge pages, because lookups are random. */
static struct intern_chunk *new_chunk(size_t len, size_t held)
{
	size_t size = MIN(MAX(3 * held, (size_t)CHUNK_MIN), CHUNK_HUGE);
	struct intern_chunk *c;

	if (len > SIZE_MAX / 4)
		return NULL;
	size = MAX(size, sizeof(*c) + len);
	if (size < CHUNK_HUGE) {
		c = malloc(size);
	} else {
		size = (size + CHUNK_HUGE - 1) & ~(CHUNK_HUGE - 1);
		c = aligned_alloc(CHUNK_HUGE, size);
		if (c)
			madvise(c, size, MADV_HUGEPAGE); /* small pages work too */
	}
	if (c)
		*c = (struct intern_chunk){ .cap = size - sizeof(*c) };
	return c;
}

/* Room for LEN bytes that live as long as the strings; NULL when memory runs out. */
static char *intern_room(struct intern *t, size_t len)
{
	struct intern_chunk *c = t->chunks;
	char *at;

	if (!c || c->cap - c->used < len) {
		c = new_chunk(len, t->bytes);
		if (!c)
			return NULL;
		c->next = t->chunks;
		t->chunks = c;
		t->bytes += c->cap;
	}
	at = c->bytes + c->used;
	c->used += len;
	return at;
}

uint32_t intern_add(struct intern *t, const void *p, size_t len, uint64_t hash)
{
	uint32_t id = (uint32_t)t->n;
	char *text;

	if (hashtable_reserve(&t->table, 1) != 0 ||
		base_grow(&t->entries, &t->cap, t->n + 1, sizeof(*t->entries)) != 0)
		return INTERN_NONE;
	text = intern_room(t, len);
	if (!text)
		return INTERN_NONE;
	if (len)
		memcpy(text, p, len);
	t->entries[t->n++] = (struct intern_entry){ .text = text, .len = len };
	hashtable_add(&t->table, hash, id);
	return id;
}

uint32_t intern_put(struct intern *t, const void *p, size_t len)
{
	uint64_t hash = intern_hash(t, p, len);
	uint32_t id = intern_find(t, p, len, hash);

	return id != INTERN_NONE ? id : intern_add(t, p, len, hash);
}

static void free_chunks(struct intern *t)
{
	for (struct intern_chunk *c = t->chunks, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	t->chunks = NULL;
	t->bytes = 0;
}

void intern_reset(struct intern *t)
{
	free_chunks(t);
	t->n = 0;
	hashtable_clear(&t->table);
}

void intern_free(struct intern *t)
{
	free_chunks(t);
	free(t->entries);
	hashtable_free(&t->table);
	*t = (struct intern){ 0 };
}

static uint64_t hash_key(uint64_t hi, uint64_t lo)
{
	uint64_t h = (lo ^ hi * HASH_K0) * HASH_K2;

	h ^= h >> 32;
	return h * HASH_K2;
}

static uint32_t find_key(const struct idmap *m, uint64_t hash, uint64_t hi, uint64_t lo)
{
	return HASHTABLE_FIND(&m->table, hash, i, m->slots[i].lo == lo && m->slots[i].hi == hi);
}

struct idmap_slot *idmap_find(const struct idmap *m, uint64_t hi, uint64_t lo)
{
	uint32_t at = find_key(m, hash_key(hi, lo), hi, lo);

	return at != HASHTABLE_NONE ? &m->slots[at] : NULL;
}

uint32_t idmap_put(struct idmap *m, uint64_t hi, uint64_t lo, uint32_t value, bool *added)
{
	uint64_t hash = hash_key(hi, lo);
	uint32_t at = find_key(m, hash, hi, lo);

	if (added)
		*added = false;
	if (at != HASHTABLE_NONE)
		return m->slots[at].value;
	if (hashtable_reserve(&m->table, 1) != 0 ||
		base_grow(&m->slots, &m->cap, m->n + 1, sizeof(*m->slots)) != 0)
		return UINT32_MAX;
	m->slots[m->n] = (struct idmap_slot){ .hi = hi, .lo = lo, .value = value };
	hashtable_add(&m->table, hash, (uint32_t)m->n++);
	if (added)
		*added = true;
	return value;
}

size_t idmap_bytes(const struct idmap *m)
{
	return m->cap * sizeof(*m->slots) + hashtable_bytes(&m->table);
}

void idmap_free(struct idmap *m)
{
	free(m->slots);
	hashtable_free(&m->table);
	*m = (struct idmap){ 0 };
}
