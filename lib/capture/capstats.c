/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capstats.h"

#include <errno.h>

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void add_sample(struct capstats_sum *sum, const struct cap_sample *s)
{
	sum->waits = add(sum->waits, s->count);
	sum->off_ns = add(sum->off_ns, s->total_ns);
	sum->longest_ns = MAX(sum->longest_ns, s->max_ns);
	if (s->flags & CAP_SAMPLE_OPEN)
		sum->open = add(sum->open, s->count);
}

/* Something of a process that is to be counted once. */
struct thing {
	uint32_t proc, a, b;
};

static int by_thing(const void *a, const void *b)
{
	const struct thing *x = a, *y = b;
	int c = CMP(x->proc, y->proc);

	c = c ? c : CMP(x->a, y->a);
	return c ? c : CMP(x->b, y->b);
}

/* Is thing I of the sorted T the first of its equals? */
static bool fresh(const struct thing *t, size_t i)
{
	return i == 0 || by_thing(&t[i - 1], &t[i]) != 0;
}

static int count_distinct(const struct capread *c, struct capstats *s)
{
	_cleanup_free_ struct thing *t = calloc(c->n_samples + c->n_threads + 1, sizeof(*t));
	size_t n = c->n_samples;

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		t[i] = (struct thing){ c->samples[i].proc, c->samples[i].kstack, c->samples[i].ustack };
	qsort(t, n, sizeof(*t), by_thing);
	for (size_t i = 0; i < n; i++)
		s->procs[t[i].proc].stacks += fresh(t, i);
	for (size_t i = 0; i < n; i++)
		t[i] = (struct thing){ c->samples[i].proc, c->samples[i].tid, 0 };
	for (size_t i = 0; i < c->n_threads; i++)
		t[n++] = (struct thing){ c->threads[i].proc, c->threads[i].tid, 0 };
	qsort(t, n, sizeof(*t), by_thing);
	for (size_t i = 0; i < n; i++) {
		s->procs[t[i].proc].threads += fresh(t, i);
		s->total.threads += fresh(t, i);
	}
	/* pairs over all processes: two of them may share one */
	n = c->n_samples;
	for (size_t i = 0; i < n; i++)
		t[i] = (struct thing){ 0, c->samples[i].kstack, c->samples[i].ustack };
	qsort(t, n, sizeof(*t), by_thing);
	for (size_t i = 0; i < n; i++)
		s->total.stacks += fresh(t, i);
	return 0;
}

static int group_cmp(const struct capstats_group *x, const struct capstats_group *y)
{
	int c = CMP(x->kind, y->kind);

	c = c ? c : CMP(x->verdict, y->verdict);
	c = c ? c : CMP(x->reason, y->reason);
	return c ? c : CMP(x->error, y->error);
}

static int by_group(const void *a, const void *b)
{
	return group_cmp(a, b);
}

/* Each stack begins as a group of its own; equal ones are then added up. */
static int group_stacks(const struct capread *c, struct capstats *s)
{
	struct capstats_group *g = calloc(c->n_stacks + 1, sizeof(*g));

	s->groups = g;
	if (!g)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_stacks; i++) {
		const struct cap_stack *k = &c->stacks[i];

		g[i] = (struct capstats_group){ k->kind, k->verdict, k->reason, k->error, .stacks = 1 };
	}
	for (size_t i = 0; i < c->n_samples; i++) {
		const struct cap_sample *k = &c->samples[i];

		g[k->kstack].waits = add(g[k->kstack].waits, k->count);
		g[k->kstack].off_ns = add(g[k->kstack].off_ns, k->total_ns);
		g[k->ustack].waits = add(g[k->ustack].waits, k->count);
		g[k->ustack].off_ns = add(g[k->ustack].off_ns, k->total_ns);
	}
	qsort(g, c->n_stacks, sizeof(*g), by_group);
	for (size_t i = 0; i < c->n_stacks; i++) {
		if (s->n_groups && group_cmp(&g[s->n_groups - 1], &g[i]) == 0) {
			g[s->n_groups - 1].stacks++;
			g[s->n_groups - 1].waits = add(g[s->n_groups - 1].waits, g[i].waits);
			g[s->n_groups - 1].off_ns = add(g[s->n_groups - 1].off_ns, g[i].off_ns);
		} else {
			g[s->n_groups++] = g[i];
		}
	}
	return 0;
}

int capstats_make(const struct capread *c, struct capstats *ret)
{
	struct capstats s = { .procs = calloc(c->n_procs + 1, sizeof(*s.procs)) };

	if (!s.procs || count_distinct(c, &s) != 0 || group_stacks(c, &s) != 0) {
		capstats_free(&s);
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->n_samples; i++) {
		add_sample(&s.total, &c->samples[i]);
		add_sample(&s.procs[c->samples[i].proc], &c->samples[i]);
	}
	s.end_ns = MAX(c->trailer.stop_ns, c->last_flush_ns);
	s.end_ns = MAX(s.end_ns, c->host.start_mono_ns);
	*ret = s;
	return 0;
}

void capstats_free(struct capstats *s)
{
	free(s->procs);
	free(s->groups);
	s->procs = NULL;
	s->groups = NULL;
}
