/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/intern.h"
#include "base/hash.h"

#include <string.h>
#include <sys/mman.h>

#define CHUNK_MIN 65536
#define CHUNK_HUGE ((size_t)2 << 20)
#define SLOTS_MIN 256

/* id_1 is the id plus one: a zeroed slot is free. */
struct intern_slot {
	uint32_t tag, id_1;
};

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
	size_t mask = t->n_slots - 1;
	uint32_t tag = (uint32_t)(hash >> 32);

	if (!t->n_slots)
		return INTERN_NONE;
	for (size_t i = hash & mask; t->slots[i].id_1; i = (i + 1) & mask) {
		const struct intern_entry *e = &t->entries[t->slots[i].id_1 - 1];

		if (t->slots[i].tag == tag && e->len == len && (!len || memcmp(e->text, p, len) == 0))
			return t->slots[i].id_1 - 1;
	}
	return INTERN_NONE;
}

/* Grows with what is HELD; a big one is made of huge pages, as look-ups in it are random. */
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
			madvise(c, size, MADV_HUGEPAGE); /* small pages do as well */
	}
	if (c)
		*c = (struct intern_chunk){ .cap = size - sizeof(*c) };
	return c;
}

/*
 * Room for LEN bytes that live as long as the strings do and need no id; NULL
 * when memory runs out.
 */
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

static void place(struct intern_slot *slots, size_t n_slots, uint64_t hash, uint32_t id)
{
	size_t mask = n_slots - 1, i = hash & mask;

	while (slots[i].id_1)
		i = (i + 1) & mask;
	slots[i] = (struct intern_slot){ .tag = (uint32_t)(hash >> 32), .id_1 = id + 1 };
}

/* At most half of the slots are taken. */
static bool grow_slots(struct intern *t)
{
	size_t want = t->n_slots ? t->n_slots * 2 : SLOTS_MIN;
	struct intern_slot *slots;

	if ((t->n + 1) * 2 <= t->n_slots)
		return true;
	slots = calloc(want, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t id = 0; id < t->n; id++)
		place(slots, want, t->entries[id].hash, (uint32_t)id);
	free(t->slots);
	t->slots = slots;
	t->n_slots = want;
	return true;
}

uint32_t intern_add(struct intern *t, const void *p, size_t len, uint64_t hash)
{
	uint32_t id = (uint32_t)t->n;
	char *text;

	if (t->n >= INTERN_NONE - 1 || !grow_slots(t))
		return INTERN_NONE;
	if (base_grow(&t->entries, &t->cap, t->n + 1, sizeof(*t->entries)) != 0)
		return INTERN_NONE;
	text = intern_room(t, len);
	if (!text)
		return INTERN_NONE;
	if (len)
		memcpy(text, p, len);
	t->entries[t->n++] = (struct intern_entry){ .text = text, .len = len, .hash = hash };
	place(t->slots, t->n_slots, hash, id);
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
	if (t->n_slots)
		memset(t->slots, 0, t->n_slots * sizeof(*t->slots));
}

void intern_free(struct intern *t)
{
	free_chunks(t);
	free(t->entries);
	free(t->slots);
	*t = (struct intern){ 0 };
}

static size_t slot_of(const struct idmap *m, uint64_t hi, uint64_t lo)
{
	uint64_t h = (lo ^ hi * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;

	h ^= h >> 32;
	return (size_t)(h * 0xd6e8feb86659fd93u >> 20) & (m->cap - 1);
}

static struct idmap_slot *probe(const struct idmap *m, uint64_t hi, uint64_t lo)
{
	size_t at = slot_of(m, hi, lo);

	while (m->slots[at].used && (m->slots[at].hi != hi || m->slots[at].lo != lo))
		at = (at + 1) & (m->cap - 1);
	return &m->slots[at];
}

static bool grow(struct idmap *m)
{
	struct idmap bigger = { .cap = m->cap ? m->cap * 2 : 256, .used = m->used };

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].used)
			*probe(&bigger, m->slots[i].hi, m->slots[i].lo) = m->slots[i];
	free(m->slots);
	*m = bigger;
	return true;
}

struct idmap_slot *idmap_find(const struct idmap *m, uint64_t hi, uint64_t lo)
{
	struct idmap_slot *s = m->cap ? probe(m, hi, lo) : NULL;

	return s && s->used ? s : NULL;
}

uint32_t idmap_put(struct idmap *m, uint64_t hi, uint64_t lo, uint32_t value, bool *added)
{
	struct idmap_slot *s;

	if (added)
		*added = false;
	if (m->used * 4 >= m->cap * 3 && !grow(m))
		return UINT32_MAX;
	s = probe(m, hi, lo);
	if (!s->used) {
		*s = (struct idmap_slot){ .hi = hi, .lo = lo, .value = value, .used = true };
		m->used++;
		if (added)
			*added = true;
	}
	return s->value;
}

void idmap_free(struct idmap *m)
{
	free(m->slots);
	*m = (struct idmap){ 0 };
}
