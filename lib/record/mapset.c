/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/mapset.h"

#include <string.h>

struct mapset *mapset_share(struct mapset *m)
{
	if (m)
		m->refs++;
	return m;
}

void mapset_drop(struct mapset *m)
{
	if (!m || --m->refs)
		return;
	free(m->maps);
	free(m);
}

/* A copy of OLD (NULL = empty) with room for one more. */
static struct mapset *copy(const struct mapset *old)
{
	struct mapset *m = calloc(1, sizeof(*m));
	size_t n = old ? old->n : 0;

	if (!m || base_grow(&m->maps, &m->cap, n + 1, sizeof(*m->maps)) != 0) {
		free(m);
		return NULL;
	}
	m->refs = 1;
	if (n)
		memcpy(m->maps, old->maps, n * sizeof(*m->maps));
	m->n = n;
	return m;
}

const struct mapping *mapset_then(const struct mapset *m, uint64_t addr, uint64_t time_ns)
{
	for (size_t i = m ? m->n : 0; i-- > 0;)
		if (m->maps[i].start <= addr && addr < m->maps[i].end && m->maps[i].from_ns <= time_ns)
			return &m->maps[i];
	return NULL;
}

const struct mapping *mapset_at(const struct mapset *m, uint64_t addr)
{
	return mapset_then(m, addr, UINT64_MAX);
}

static bool same_place(const struct mapping *a, const struct mapping *b)
{
	if (a->file != b->file)
		return false;
	return a->file == UINT32_MAX || a->start - a->offset == b->start - b->offset;
}

bool mapset_changes(const struct mapset *m, const struct mapping *new)
{
	for (size_t i = 0; m && i < m->n; i++)
		if (m->maps[i].start < new->end &&new->start < m->maps[i].end &&
			!same_place(&m->maps[i], new))
			return true;
	return false;
}

/* Reported twice, by a scan and by an event, or by an mprotect that changed nothing here. */
bool mapset_has(const struct mapset *m, const struct mapping *new)
{
	const struct mapping *old = mapset_at(m, new->start);

	if (!old || old->file != new->file)
		return false;
	/* anonymous code that grows and shrinks by mprotect: inside of what is known it is nothing new */
	if (new->file == UINT32_MAX)
		return old->start <= new->start &&new->end <= old->end;
	return old->start == new->start && old->end == new->end && old->offset == new->offset;
}

bool mapset_add(struct mapset **m, const struct mapping *new)
{
	if (mapset_has(*m, new))
		return true;
	if (!*m || (*m)->refs > 1) {
		struct mapset *own = copy(*m);

		if (!own)
			return false;
		mapset_drop(*m);
		*m = own;
	}
	if (base_grow(&(*m)->maps, &(*m)->cap, (*m)->n + 1, sizeof(*(*m)->maps)) != 0)
		return false;
	(*m)->maps[(*m)->n++] = *new;
	return true;
}
