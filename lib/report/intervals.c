/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/intervals.h"
#include "report/format.h"

#include <errno.h>

/*
 * Sums by interval. A span costs the same however many intervals it covers: its ends are added, and between
 * them it is counted at its first and last whole interval.
 */
struct spans {
	wait_sum *part_ns;
	int64_t *whole; /* how many more cover this interval whole than the one before */
};

static void add_span(struct spans *s, uint64_t interval, uint64_t from, uint64_t to)
{
	size_t i, k;

	if (from >= to)
		return;
	i = (size_t)(from / interval);
	k = (size_t)((to - 1) / interval);
	if (i == k) {
		s->part_ns[i] += to - from;
		return;
	}
	s->part_ns[i] += (i + 1) * interval - from;
	s->part_ns[k] += to - k * interval;
	s->whole[i + 1]++;
	s->whole[k]--;
}

static bool make_spans(struct spans *s, size_t n)
{
	s->part_ns = calloc(n + 1, sizeof(*s->part_ns));
	s->whole = calloc(n + 1, sizeof(*s->whole));
	return s->part_ns && s->whole;
}

static void free_spans(struct spans *s)
{
	free(s->part_ns);
	free(s->whole);
}

struct work {
	struct intervals *t;
	const struct waits *w;
	uint32_t *order; /* indexes of events, by place */
	size_t n;
	struct spans place, blocked, runnable; /* the first is of one place at a time */
};

static int by_place(const void *a, const void *b, void *waits)
{
	const struct waits *w = waits;
	const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct wait_row *x = &w->rows[w->events[i].row], *y = &w->rows[w->events[k].row];

	return x->path != y->path   ? CMP(x->path, y->path)
	       : x->kind != y->kind ? CMP(x->kind, y->kind)
				    : CMP(i, k);
}

static bool same_place(const struct waits *w, uint32_t i, uint32_t k)
{
	const struct wait_row *x = &w->rows[w->events[i].row], *y = &w->rows[w->events[k].row];

	return x->path == y->path && x->kind == y->kind;
}

static void add_event(struct work *k, const struct wait_event *v)
{
	const uint64_t interval = k->t->interval_ns, from = v->begin_ns - k->t->start_ns,
		       to = from + v->len_ns;
	struct interval *first = &k->t->p[from / interval];

	first->count++;
	first->len_ns += v->len_ns;
	first->max_ns = MAX(first->max_ns, v->len_ns);
	add_span(&k->place, interval, from, to);
	if (v->runnable_ns == WAIT_NOT_KNOWN)
		return;
	add_span(&k->blocked, interval, from, to - v->runnable_ns);
	add_span(&k->runnable, interval, to - v->runnable_ns, to);
}

/* Add the sums of the place of ROW in the intervals [FROM, TO], and clear them. */
static void end_place(struct work *k, const struct wait_row *row, size_t from, size_t to)
{
	int64_t whole = 0;

	for (size_t i = from; i <= to; i++) {
		struct interval *v = &k->t->p[i];
		wait_sum sum;

		whole += k->place.whole[i];
		sum = k->place.part_ns[i] + (wait_sum)whole * k->t->interval_ns;
		k->place.part_ns[i] = 0;
		k->place.whole[i] = 0;
		v->total += sum;
		if (sum > v->greatest) {
			v->greatest = sum;
			v->path = row->path;
			v->kind = row->kind;
		}
	}
}

static void add_places(struct work *k)
{
	const struct waits *w = k->w;
	int64_t blocked = 0, runnable = 0;

	for (size_t i = 0, end; i < k->n; i = end) {
		size_t from = SIZE_MAX, to = 0;

		for (end = i; end < k->n && same_place(w, k->order[i], k->order[end]); end++) {
			const struct wait_event *v = &w->events[k->order[end]];
			const uint64_t begin = v->begin_ns - k->t->start_ns;
			const uint64_t last = begin + v->len_ns - (v->len_ns > 0);

			add_event(k, v);
			from = MIN(from, (size_t)(begin / k->t->interval_ns));
			to = MAX(to, (size_t)(last / k->t->interval_ns));
		}
		end_place(k, &w->rows[w->events[k->order[i]].row], from, to);
	}
	for (size_t i = 0; i < k->t->n; i++) {
		blocked += k->blocked.whole[i];
		runnable += k->runnable.whole[i];
		k->t->p[i].blocked = k->blocked.part_ns[i] + (wait_sum)blocked * k->t->interval_ns;
		k->t->p[i].runnable = k->runnable.part_ns[i] + (wait_sum)runnable * k->t->interval_ns;
	}
}

/* The least 1, 2 or 5 times a power of ten that is not less than V. */
static uint64_t round_up(uint64_t v)
{
	static const uint64_t steps[] = { 1, 2, 5 };

	for (uint64_t power = 1; power <= UINT64_MAX / 100; power *= 10) {
		for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
			if (steps[i] * power >= v)
				return steps[i] * power;
		}
	}
	return v;
}

static int too_many(uint64_t len_ns, uint64_t interval_ns, struct err *e)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = { { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "us" }, { 1, "ns" } };
	const uint64_t least = round_up((len_ns - 1) / INTERVALS_MAX + 1);
	char len[FORMAT_NUMBER_MAX], interval[FORMAT_NUMBER_MAX];
	size_t u = 0;

	while (least < units[u].ns)
		u++;
	err_set(e, -ERANGE, "a recording of %s has more than %d intervals of %s", format_time(len, len_ns),
		INTERVALS_MAX, format_time(interval, interval_ns));
	err_hint(e, "--by=%llu%s makes fewer", (unsigned long long)(least / units[u].ns), units[u].name);
	return -ERANGE;
}

int intervals_make(struct intervals *t, const struct waits *w, const struct ranking *r, uint64_t interval_ns,
	struct err *e)
{
	const uint64_t len = waits_end(w) - waits_start(w);
	struct work k = { .t = t, .w = w };
	bool made;

	*t = (struct intervals){ .start_ns = waits_start(w), .interval_ns = interval_ns };
	if (len && (len - 1) / interval_ns >= INTERVALS_MAX)
		return too_many(len, interval_ns, e);
	/* one more, if a wait of no length is at the very end */
	t->n = (size_t)(len / interval_ns) + 1;
	t->p = calloc(t->n, sizeof(*t->p));
	k.order = calloc(w->n_events + 1, sizeof(*k.order));
	made = make_spans(&k.place, t->n) && make_spans(&k.blocked, t->n) && make_spans(&k.runnable, t->n);
	if (made && t->p && k.order) {
		for (size_t i = 0; i < t->n; i++)
			t->p[i].path = WAITS_NONE;
		for (size_t i = 0; i < w->n_events; i++) {
			if (r->row_is_ranked[w->events[i].row])
				k.order[k.n++] = (uint32_t)i;
		}
		/* by_place() only reads them */
		qsort_r(k.order, k.n, sizeof(*k.order), by_place, (void *)(uintptr_t)w);
		add_places(&k);
		if (t->n > 1 && len % interval_ns == 0 && !t->p[t->n - 1].count)
			t->n--;
	}
	made &= t->p && k.order;
	free(k.order);
	free_spans(&k.place);
	free_spans(&k.blocked);
	free_spans(&k.runnable);
	return made ? 0 : err_nomem(e, "the intervals");
}

void intervals_free(struct intervals *t)
{
	free(t->p);
	*t = (struct intervals){ 0 };
}
