/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capstops.h"

#include <errno.h>

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int by_group(const struct capstops_stop *x, const struct capstops_stop *y)
{
	int c = CMP(x->reason, y->reason);

	c = c ? c : CMP(x->mapped, y->mapped);
	return c ? c : CMP(x->file, y->file);
}

static int by_place(const void *a, const void *b)
{
	const struct capstops_stop *x = a, *y = b;
	int c = by_group(x, y);

	return c ? c : CMP(x->place, y->place);
}

static int by_waits(const void *a, const void *b)
{
	const struct capstops_stop *x = a, *y = b;
	int c = CMP(y->waits, x->waits);

	c = c ? c : CMP(y->off_ns, x->off_ns);
	return c ? c : by_place(a, b);
}

static struct capstops_stop stop_of(
	const struct capread *c, const struct cap_sample *s, const struct cap_stack *k)
{
	const struct cap_map *m = capread_map(c, s->proc, k->stop_pc, s->first_ns, s->last_ns, NULL);
	struct capstops_stop stop = { .reason = k->reason,
		.mapped = m != NULL,
		.file = m ? m->file : CAP_NONE,
		.places = 1,
		.waits = s->count,
		.off_ns = s->total_ns,
		.place = k->stop_pc };

	if (stop.file != CAP_NONE)
		stop.place = k->stop_pc - m->start + m->offset;
	return stop;
}

/* Stops at one place become one; returns how many are left. */
static size_t merge_places(struct capstops_stop *list, size_t n)
{
	size_t kept = 0;

	qsort(list, n, sizeof(*list), by_place);
	for (size_t i = 0; i < n; i++) {
		if (!kept || by_place(&list[kept - 1], &list[i]) != 0) {
			list[kept++] = list[i];
			continue;
		}
		list[kept - 1].waits = add(list[kept - 1].waits, list[i].waits);
		list[kept - 1].off_ns = add(list[kept - 1].off_ns, list[i].off_ns);
	}
	return kept;
}

/* Places of one reason and file become one entry, with the greatest place. */
static size_t merge_groups(struct capstops_stop *list, size_t n)
{
	size_t kept = 0;
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		struct capstops_stop *into = kept ? &list[kept - 1] : NULL;

		if (!into || by_group(into, &list[i]) != 0) {
			most = list[i].waits;
			list[kept++] = list[i];
			continue;
		}
		if (list[i].waits > most) {
			most = list[i].waits;
			into->place = list[i].place;
		}
		into->places++;
		into->waits = add(into->waits, list[i].waits);
		into->off_ns = add(into->off_ns, list[i].off_ns);
	}
	return kept;
}

int capstops_make(const struct capread *c, struct capstops *ret)
{
	struct capstops_stop *list = calloc(c->n_samples + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_samples; i++) {
		const struct cap_stack *k = &c->stacks[c->samples[i].ustack];

		if (k->verdict == CAP_STOPPED)
			list[n++] = stop_of(c, &c->samples[i], k);
	}
	n = merge_groups(list, merge_places(list, n));
	qsort(list, n, sizeof(*list), by_waits);
	*ret = (struct capstops){ list, n };
	return 0;
}

void capstops_free(struct capstops *s)
{
	free(s->list);
	s->list = NULL;
	s->n = 0;
}
