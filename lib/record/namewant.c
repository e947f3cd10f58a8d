/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/namewant.h"
#include "base/intern.h"

#define SEEN_MAX (1 << 18) /* pairs of process and stack that are remembered */

struct namewant {
	struct idmap seen; /* (process and epoch, stack) */
	struct idmap known; /* (file, offset) */
	struct namewant_place *places; /* that were not taken */
	size_t n, cap;
	uint64_t missed;
};

int namewant_new(struct namewant **ret, struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : err_nomem(e, "the places to be named");
}

void namewant_free(struct namewant *w)
{
	if (!w)
		return;
	idmap_free(&w->seen);
	idmap_free(&w->known);
	free(w->places);
	free(w);
}

bool namewant_is_new(struct namewant *w, uint32_t proc, uint32_t ustack, uint32_t epoch)
{
	bool added = false;

	/* begun anew when it is full: what was in it is gone through once more, and no harm is done */
	if (w->seen.used >= SEEN_MAX) {
		idmap_free(&w->seen);
		w->seen = (struct idmap){ 0 };
	}
	return idmap_put(&w->seen, (uint64_t)proc << 32 | epoch, ustack, 0, &added) == UINT32_MAX || added;
}

static void put(struct namewant *w, const struct mapping *m, uint64_t addr)
{
	uint64_t offset = addr - m->start + m->offset;
	bool added = false;

	if (idmap_find(&w->known, m->file, offset))
		return;
	if (w->known.used >= NAMEWANT_PLACES_MAX ||
		base_grow(&w->places, &w->cap, w->n + 1, sizeof(*w->places)) != 0 ||
		idmap_put(&w->known, m->file, offset, 0, &added) == UINT32_MAX) {
		w->missed++;
		return;
	}
	w->places[w->n++] = (struct namewant_place){ offset, m->file };
}

void namewant_add(struct namewant *w, const struct mapset *maps, const struct cap_stack *s, uint64_t first_ns,
	uint64_t last_ns)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < s->len; i++) {
		bool exact = !i || (k < s->n_exact && s->exact[k] == i);
		uint64_t addr = s->frames[i] - (exact || !s->frames[i] ? 0 : 1);
		const struct mapping *m = mapset_then(maps, addr, first_ns);

		k += i && exact;
		if (!m)
			m = mapset_then(maps, addr, last_ns);
		if (m && m->file != UINT32_MAX)
			put(w, m, addr);
	}
}

void namewant_miss(struct namewant *w, uint64_t n)
{
	w->missed += n;
}

static int by_place(const void *a, const void *b)
{
	const struct namewant_place *x = a, *y = b;

	return x->file != y->file ? CMP(x->file, y->file) : CMP(x->offset, y->offset);
}

size_t namewant_waiting(const struct namewant *w)
{
	return w->n;
}

struct namewant_place *namewant_take(struct namewant *w, size_t *n)
{
	struct namewant_place *places = w->places;

	*n = w->n;
	if (!places)
		return calloc(1, sizeof(*places));
	qsort(places, w->n, sizeof(*places), by_place);
	w->places = NULL;
	w->n = w->cap = 0;
	return places;
}

uint64_t namewant_missed(const struct namewant *w)
{
	return w->missed;
}
