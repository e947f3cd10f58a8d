/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/procset.h"

#include <string.h>

#define NOWHERE UINT32_MAX

void procset_free(struct procset *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->threads[i]);
	for (size_t i = 0; i < s->n_procs; i++) {
		if (s->end)
			s->end(s->ctx, s->procs[i]);
		free(s->procs[i]);
	}
	free(s->threads);
	free(s->procs);
	idmap_free(&s->by_tid);
	idmap_free(&s->by_tgid);
	*s = (struct procset){ .end = s->end, .ctx = s->ctx };
}

static uint32_t lookup(const struct idmap *m, uint64_t hi, uint64_t lo)
{
	const struct idmap_slot *slot = idmap_find(m, hi, lo);

	return slot ? slot->value : NOWHERE;
}

static bool store(struct idmap *m, uint64_t hi, uint64_t lo, uint32_t value)
{
	bool added;
	struct idmap_slot *slot;

	if (idmap_put(m, hi, lo, value, &added) == NOWHERE && value != NOWHERE && added)
		return false;
	slot = idmap_find(m, hi, lo);
	if (slot)
		slot->value = value;
	return slot != NULL;
}

struct procset_thread *procset_find(const struct procset *s, uint32_t pid, uint32_t tid)
{
	uint32_t at = lookup(&s->by_tid, pid, tid);

	return at == NOWHERE ? NULL : s->threads[at];
}

struct procset_process *procset_process(const struct procset *s, uint32_t tgid)
{
	uint32_t at = lookup(&s->by_tgid, 0, tgid);

	return at == NOWHERE ? NULL : s->procs[at];
}

static struct procset_process *add_process(struct procset *s, uint32_t tgid)
{
	struct procset_process *p;

	if (base_grow(&s->procs, &s->cap_procs, s->n_procs + 1, sizeof(struct procset_process *)) != 0)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p || !store(&s->by_tgid, 0, tgid, (uint32_t)s->n_procs)) {
		free(p);
		return NULL;
	}
	p->tgid = tgid;
	s->procs[s->n_procs++] = p;
	return p;
}

static void remove_process(struct procset *s, struct procset_process *p)
{
	uint32_t at = lookup(&s->by_tgid, 0, p->tgid);
	struct procset_process *last = s->procs[s->n_procs - 1];

	if (s->end)
		s->end(s->ctx, p);
	store(&s->by_tgid, 0, p->tgid, NOWHERE);
	s->stale++;
	s->procs[at] = last;
	if (last != p)
		store(&s->by_tgid, 0, last->tgid, at);
	s->n_procs--;
	free(p);
}

struct procset_thread *procset_add(struct procset *s, uint32_t pid, uint32_t tid)
{
	struct procset_process *p = procset_process(s, pid);
	struct procset_thread *t;

	if (s->n >= PROCSET_MAX ||
		base_grow(&s->threads, &s->cap, s->n + 1, sizeof(struct procset_thread *)) != 0)
		return NULL;
	p = p ? p : add_process(s, pid);
	t = p ? calloc(1, sizeof(*t)) : NULL;
	if (!t || !store(&s->by_tid, pid, tid, (uint32_t)s->n)) {
		free(t);
		if (p && !p->n_threads)
			remove_process(s, p);
		return NULL;
	}
	t->proc = p;
	t->look = (struct proclook_thread){ .pid = pid, .tid = tid };
	for (size_t i = 0; i < PROCFILE_LOOK; i++)
		t->look.fd[i] = -1;
	p->n_threads++;
	s->threads[s->n++] = t;
	return t;
}

/* Keys are never taken out: the maps are made anew when most of them lead nowhere. */
static void tidy(struct procset *s)
{
	if (s->stale < 1024 + 2 * s->n)
		return;
	s->stale = 0;
	idmap_free(&s->by_tid);
	idmap_free(&s->by_tgid);
	for (size_t i = 0; i < s->n; i++)
		store(&s->by_tid, s->threads[i]->look.pid, s->threads[i]->look.tid, (uint32_t)i);
	for (size_t i = 0; i < s->n_procs; i++)
		store(&s->by_tgid, 0, s->procs[i]->tgid, (uint32_t)i);
}

void procset_remove(struct procset *s, size_t at)
{
	struct procset_thread *t = s->threads[at], *last = s->threads[s->n - 1];

	store(&s->by_tid, t->look.pid, t->look.tid, NOWHERE);
	s->stale++;
	s->threads[at] = last;
	if (last != t)
		store(&s->by_tid, last->look.pid, last->look.tid, (uint32_t)at);
	s->n--;
	if (--t->proc->n_threads == 0)
		remove_process(s, t->proc);
	free(t);
	tidy(s);
}
