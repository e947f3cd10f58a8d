/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/procrows.h"
#include "base/hash.h"
#include "record/processes.h"

#include <string.h>

void procrows_free(struct procrows *r)
{
	free(r->rows);
	idmap_free(&r->by_key);
	idmap_free(&r->looked_up);
	r->rows = NULL;
	r->n = r->cap = 0;
}

void procrows_add(struct procrows *r, const struct offcpu_key *key, const struct offcpu_value *value)
{
	uint64_t hi = hash_bytes(key, sizeof(*key), 1), lo = hash_bytes(key, sizeof(*key), 2);
	struct offcpu_value *v;
	uint32_t at;
	bool added;

	if (base_grow(&r->rows, &r->cap, r->n + 1, sizeof(*r->rows)) != 0 ||
		(at = idmap_put(&r->by_key, hi, lo, (uint32_t)r->n, &added)) == UINT32_MAX) {
		r->lost += value->count;
		return;
	}
	if (added) {
		r->rows[r->n++] = (struct procrows_row){ *key, *value };
		return;
	}
	v = &r->rows[at].value;
	v->total_ns += value->total_ns;
	v->count += value->count;
	v->max_ns = MAX(v->max_ns, value->max_ns);
	v->first_ns = MIN(v->first_ns, value->first_ns);
	v->last_ns = MAX(v->last_ns, value->last_ns);
}

/* Once for each stack of a process: is something mapped where its frames are? */
static bool is_mapped(struct procrows *r, const struct offcpu_key *k, uint32_t proc, uint32_t ustack)
{
	const struct mapset *maps;
	struct cap_stack s;
	bool added = false;

	idmap_put(&r->looked_up, proc, ustack, 0, &added);
	if (!added || !stacktab_frames(r->stacks, &k->user, &s))
		return true;
	maps = proctab_maps(r->procs, k);
	for (uint32_t i = 0; i < s.len; i++)
		if (!mapset_at(maps, s.frames[i]))
			return false;
	return true;
}

static void want_names(struct procrows *r, const struct offcpu_key *k, const struct cap_sample *s)
{
	struct cap_stack stack;

	if (!r->names || !namewant_is_new(r->names, s->proc, s->ustack, s->flags / CAP_SAMPLE_EPOCH))
		return;
	if (stacktab_frames(r->stacks, &k->user, &stack))
		namewant_add(r->names, proctab_maps(r->procs, k), &stack, s->first_ns, s->last_ns);
	else
		namewant_miss(r->names, stack.len);
}

static void write_row(struct procrows *r, const struct procrows_row *row, struct capwrite *w,
	void (*unmapped)(void *ctx, uint32_t tgid), void *ctx)
{
	const struct offcpu_key *k = &row->key;
	const struct offcpu_value *v = &row->value;
	struct stacktab_end end = { 0 };
	struct cap_sample s = { .tid = k->tid,
		.state = k->state,
		.flags = k->flags,
		.total_ns = v->total_ns,
		.count = v->count,
		.max_ns = v->max_ns,
		.first_ns = v->first_ns,
		.last_ns = v->last_ns };

	s.proc = proctab_emit(r->procs, k, v->first_ns, w);
	s.flags |= proctab_epoch(r->procs, k, v->first_ns, v->last_ns) * CAP_SAMPLE_EPOCH;
	jitkeep_see(r->jit, r->procs, r->stacks, k, s.proc, v->first_ns);
	s.kstack = stacktab_emit(r->stacks, CAP_STACK_KERNEL, &k->kernel, w, NULL);
	s.ustack = stacktab_emit(r->stacks, CAP_STACK_USER, &k->user, w, &end);
	if (s.proc == CAP_NONE || s.kstack == CAP_NONE || s.ustack == CAP_NONE) {
		r->lost += v->count;
		return;
	}
	capends_add(&r->user, end.verdict, end.reason, v->count);
	capwrite_sample(w, &s);
	if (!is_mapped(r, k, s.proc, s.ustack))
		unmapped(ctx, k->tgid);
	want_names(r, k, &s);
}

void procrows_write(
	struct procrows *r, struct capwrite *w, void (*unmapped)(void *ctx, uint32_t tgid), void *ctx)
{
	for (size_t i = 0; i < r->n; i++)
		write_row(r, &r->rows[i], w, unmapped, ctx);
	r->n = 0;
	idmap_free(&r->by_key);
}
