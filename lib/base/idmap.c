/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/idmap.h"

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
