/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/critical_path.h"

#include <errno.h>
#include <string.h>

/* --- the waits of each thread --- */

static int by_begin(const void *a, const void *b)
{
	const struct critical_wait *x = a, *y = b;

	return x->begin_ns != y->begin_ns ? CMP(x->begin_ns, y->begin_ns) : CMP(x->event, y->event);
}

/* Sort the N waits of a thread, and cut what overlaps. Returns how many are left. */
static size_t order(struct critical_waits *c, struct critical_wait *p, size_t n)
{
	bool sorted = true;
	uint64_t end = 0;
	size_t kept = 0;

	for (size_t i = 1; i < n && sorted; i++)
		sorted = p[i - 1].begin_ns <= p[i].begin_ns;
	if (!sorted)
		qsort(p, n, sizeof(*p), by_begin);
	for (size_t i = 0; i < n; i++) {
		struct critical_wait v = p[i];

		c->n_cut += v.begin_ns < end && v.begin_ns < v.end_ns;
		v.begin_ns = MAX(v.begin_ns, end);
		if (v.begin_ns >= v.end_ns)
			continue;
		end = v.end_ns;
		p[kept++] = v;
	}
	return kept;
}

static int by_at(const void *a, const void *b)
{
	const struct critical_sample *x = a, *y = b;

	return x->at_ns != y->at_ns ? CMP(x->at_ns, y->at_ns) : CMP(x->path, y->path);
}

/* The samples of each thread. */
static int make_samples(struct critical_waits *c)
{
	const struct waits *w = c->w;
	_cleanup_free_ size_t *next = calloc(w->n_threads + 1, sizeof(*next));

	c->samples = calloc(w->n_samples + 1, sizeof(*c->samples));
	c->first_sample = calloc(w->n_threads + 1, sizeof(*c->first_sample));
	if (!next || !c->samples || !c->first_sample)
		return -ENOMEM;
	for (size_t i = 0; i < w->n_samples; i++) {
		uint32_t thread = w->rows[w->samples[i].row].thread;

		if (thread != WAITS_NONE)
			c->first_sample[thread + 1]++;
	}
	for (size_t i = 0; i < w->n_threads; i++) {
		c->first_sample[i + 1] += c->first_sample[i];
		next[i] = c->first_sample[i];
	}
	for (size_t i = 0; i < w->n_samples; i++) {
		const struct wait_row *row = &w->rows[w->samples[i].row];

		if (row->thread != WAITS_NONE)
			c->samples[next[row->thread]++] =
				(struct critical_sample){ w->samples[i].at_ns, row->path };
	}
	for (size_t i = 0; i < w->n_threads; i++) {
		size_t n = c->first_sample[i + 1] - c->first_sample[i];

		if (n)
			qsort(c->samples + c->first_sample[i], n, sizeof(*c->samples), by_at);
	}
	return 0;
}

int critical_make(struct critical_waits *c, const struct waits *w, struct err *e)
{
	size_t *next = NULL, n = 0;

	*c = (struct critical_waits){ .w = w };
	if (make_samples(c) != 0)
		return err_nomem(e, "the samples of threads");
	c->p = calloc(w->n_events + 1, sizeof(*c->p));
	c->first = calloc(w->n_threads + 1, sizeof(*c->first));
	c->on_path = calloc(w->n_threads + 1, sizeof(*c->on_path));
	next = calloc(w->n_threads + 1, sizeof(*next));
	if (!c->p || !c->first || !c->on_path || !next) {
		free(next);
		return err_nomem(e, "the waits of threads");
	}
	for (size_t i = 0; i < w->n_events; i++) {
		uint32_t thread = w->rows[w->events[i].row].thread;

		if (thread != WAITS_NONE)
			c->first[thread + 1]++;
	}
	for (size_t i = 0; i < w->n_threads; i++) {
		c->first[i + 1] += c->first[i];
		next[i] = c->first[i];
	}
	for (size_t i = 0; i < w->n_events; i++) {
		const struct wait_event *v = &w->events[i];
		uint32_t thread = w->rows[v->row].thread;

		if (thread != WAITS_NONE)
			c->p[next[thread]++] =
				(struct critical_wait){ v->begin_ns, v->begin_ns + v->len_ns, (uint32_t)i };
	}
	for (size_t i = 0; i < w->n_threads; i++) {
		size_t from = c->first[i], kept = order(c, c->p + from, c->first[i + 1] - from);

		memmove(c->p + n, c->p + from, kept * sizeof(*c->p));
		c->first[i] = n;
		n += kept;
	}
	c->first[w->n_threads] = n;
	free(next);
	return 0;
}

void critical_free(struct critical_waits *c)
{
	free(c->p);
	free(c->samples);
	free(c->first_sample);
	free(c->first);
	free(c->on_path);
	*c = (struct critical_waits){ 0 };
}

/* The last wait of THREAD that begins before T, or NULL. */
static const struct critical_wait *find_before(const struct critical_waits *c, uint32_t thread, uint64_t t)
{
	size_t low = c->first[thread], high = c->first[thread + 1];

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->p[mid].begin_ns < t)
			low = mid + 1;
		else
			high = mid;
	}
	return low > c->first[thread] ? &c->p[low - 1] : NULL;
}

/* When V's thread was woken. */
static uint64_t woken(const struct critical_waits *c, const struct critical_wait *v)
{
	const struct wait_event *event = &c->w->events[v->event];

	if (event->runnable_ns == WAIT_NOT_KNOWN)
		return v->end_ns;
	return MAX(v->begin_ns, v->end_ns - MIN(v->end_ns, event->runnable_ns));
}

/* --- the walk --- */

/* A thread whose path is followed no further back than FLOOR. */
struct level {
	uint32_t thread;
	uint64_t floor;
};

struct walk {
	const struct critical_waits *c;
	struct level *levels;
	size_t n, cap;
	uint64_t t; /* everything from here on has been given */
	critical_take *take;
	void *ctx;
};

/* Give [FROM, t) as WHAT of the present thread. */
static int give(struct walk *k, uint64_t from, enum critical_what what, const struct critical_wait *v,
	enum critical_end end, struct err *e)
{
	struct critical_segment s = { .from_ns = from,
		.to_ns = k->t,
		.thread = k->levels[k->n - 1].thread,
		.event = v ? v->event : WAITS_NONE,
		.what = what,
		.end = end };

	k->t = from;
	return k->take(k->ctx, &s, e);
}

static int enter(struct walk *k, uint32_t thread, uint64_t floor, struct err *e)
{
	if (base_grow(&k->levels, &k->cap, k->n + 1, sizeof(*k->levels)) != 0)
		return err_nomem(e, "the path");
	k->levels[k->n++] = (struct level){ thread, floor };
	k->c->on_path[thread] = true;
	return 0;
}

/* The blocked part [FROM, t) of V: of its waker, or of itself. WOKE: t is when it was woken. */
static int explain(struct walk *k, const struct critical_wait *v, uint64_t from, bool woke, struct err *e)
{
	const struct critical_waits *c = k->c;
	const struct wait_event *event = &c->w->events[v->event];
	const struct critical_wait *other;
	const struct wait_waker *waker;

	if (event->waker == WAITS_NONE)
		return give(k, from, CRITICAL_BLOCKED, v,
			event->open ? CRITICAL_NOT_ENDED : CRITICAL_NO_WAKER, e);
	waker = &c->w->wakers[event->waker];
	if (waker->thread == WAITS_NONE) {
		size_t len;
		bool hidden = *waits_string(c->w, waker->name, &len) == '[';

		return give(k, from, CRITICAL_BLOCKED, v,
			waker->interrupt ? CRITICAL_BY_INTERRUPT
			: hidden         ? CRITICAL_HIDDEN
					 : CRITICAL_NOT_RECORDED,
			e);
	}
	if (c->first[waker->thread] == c->first[waker->thread + 1])
		return give(k, from, CRITICAL_BLOCKED, v, CRITICAL_NOT_RECORDED, e);
	/* it waits for this thread since FLOOR or longer, so it had woken it by then */
	if (c->on_path[waker->thread]) {
		bool late =
			woke && v->begin_ns <= k->levels[k->n - 1].floor && k->t - from <= CRITICAL_SLACK_NS;

		return late ? give(k, from, CRITICAL_RUNNABLE, v, 0, e)
			    : give(k, from, CRITICAL_BLOCKED, v, CRITICAL_CONTRADICTION, e);
	}
	other = woke ? find_before(c, waker->thread, k->t) : NULL;
	if (other && other->end_ns > k->t) {
		bool late = other->begin_ns > from && k->t - other->begin_ns <= CRITICAL_SLACK_NS;
		int code = late ? give(k, other->begin_ns, CRITICAL_RUNNABLE, v, 0, e) : 0;

		if (code)
			return code;
		/* else noted early: it woke the thread after its own wait, if that ended in time */
		if (!late && other->end_ns > v->end_ns)
			return give(k, from, CRITICAL_BLOCKED, v, CRITICAL_CONTRADICTION, e);
	}
	return enter(k, waker->thread, from, e);
}

/* One part of the present thread, before t. */
static int step(struct walk *k, struct err *e)
{
	const struct level *level = &k->levels[k->n - 1];
	const struct critical_wait *v = find_before(k->c, level->thread, k->t);
	/* the thread was seen awake at t: only at the end of the window it may be gone */
	bool last = k->n == 1 && v && v + 1 == k->c->p + k->c->first[level->thread + 1];
	uint64_t from, wake;

	if (!v)
		return give(k, level->floor, CRITICAL_OUTSIDE, NULL, 0, e);
	if (v->end_ns < k->t)
		return give(k, MAX(v->end_ns, level->floor), last ? CRITICAL_OUTSIDE : CRITICAL_RUNNING, NULL,
			0, e);
	from = MAX(v->begin_ns, level->floor);
	wake = woken(k->c, v);
	if (k->t > wake)
		return give(k, MAX(wake, from), CRITICAL_RUNNABLE, v, 0, e);
	return explain(k, v, from, k->t == wake, e);
}

int critical_walk(const struct critical_waits *c, uint32_t thread, uint64_t from, uint64_t to,
	critical_take *take, void *ctx, struct err *e)
{
	struct walk k = { .c = c, .t = MAX(from, to), .take = take, .ctx = ctx };
	int code = enter(&k, thread, from, e);

	while (k.n && !code) {
		if (k.t > k.levels[k.n - 1].floor)
			code = step(&k, e);
		else
			c->on_path[k.levels[--k.n].thread] = false;
	}
	while (k.n)
		c->on_path[k.levels[--k.n].thread] = false;
	free(k.levels);
	return code;
}

/* --- the path --- */

struct adding {
	struct critical_path *path;
	const struct critical_waits *c;
	bool segments;
};

/* Add LEN of the present stretch of time to the part that is like PART. */
static int add_part(struct critical_path *path, const struct critical_part *part, uint64_t len, struct err *e)
{
	const bool placed = part->what == CRITICAL_BLOCKED || part->sampled;
	struct critical_part *at;
	uint32_t place = 0, i;
	bool added;

	if (placed) {
		place = idmap_put(
			&path->by_place, part->path, part->kind, (uint32_t)path->by_place.n + 1, NULL);
		if (place == UINT32_MAX)
			return err_nomem(e, "the path");
	}
	i = idmap_put(&path->by_part, (uint64_t)part->thread << 32 | place,
		(uint64_t)part->waker << 32 | (uint64_t)part->what << 8 | (uint64_t)part->end,
		(uint32_t)path->n, &added);
	if (i == UINT32_MAX || base_grow(&path->parts, &path->cap, path->n + 1, sizeof(*path->parts)) != 0)
		return err_nomem(e, "the path");
	if (added)
		path->parts[path->n++] = *part;
	at = &path->parts[i];
	if (at->stretch != path->n_stretches) {
		at->stretch = path->n_stretches;
		at->stretch_ns = 0;
		at->count++;
	}
	at->stretch_ns += len;
	at->max_ns = MAX(at->max_ns, at->stretch_ns);
	at->total += len;
	return 0;
}

/* The first sample of THREAD at T or later. */
static size_t find_sample(const struct critical_waits *c, uint32_t thread, uint64_t t)
{
	size_t low = c->first_sample[thread], high = c->first_sample[thread + 1];

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->samples[mid].at_ns < t)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Divide what is running among its samples, to the nanosecond. */
static int add_running(struct adding *a, const struct critical_segment *s, struct err *e)
{
	const uint64_t len = s->to_ns - s->from_ns;
	const size_t first = find_sample(a->c, s->thread, s->from_ns);
	const size_t n = find_sample(a->c, s->thread, s->to_ns) - first;
	struct critical_part part = { .thread = s->thread, .what = s->what, .sampled = n };
	uint64_t given = 0;
	int code = 0;

	if (!n)
		return add_part(a->path, &part, len, e);
	for (size_t i = 0; i < n && !code; i++) {
		const uint64_t upto = (uint64_t)((wait_sum)len * (i + 1) / n);

		part.path = a->c->samples[first + i].path;
		code = add_part(a->path, &part, upto - given, e);
		given = upto;
	}
	a->path->sampled += len;
	a->path->n_samples += n;
	return code;
}

static int add_blocked(struct adding *a, const struct critical_segment *s, struct err *e)
{
	const struct waits *w = a->c->w;
	const struct wait_event *event = &w->events[s->event];
	const struct critical_part part = { .thread = s->thread,
		.what = s->what,
		.end = s->end,
		.path = w->rows[event->row].path,
		.kind = w->rows[event->row].kind,
		.waker = event->waker == WAITS_NONE ? 0 : w->wakers[event->waker].name };

	a->path->blocked[s->end] += s->to_ns - s->from_ns;
	return add_part(a->path, &part, s->to_ns - s->from_ns, e);
}

static int add_segment(void *ctx, const struct critical_segment *s, struct err *e)
{
	struct adding *a = ctx;
	struct critical_path *path = a->path;
	const uint64_t len = s->to_ns - s->from_ns;
	int code;

	path->n_stretches++;
	path->total += len;
	path->of[s->what] += len;
	if (s->what == CRITICAL_BLOCKED)
		code = add_blocked(a, s, e);
	else if (s->what == CRITICAL_RUNNING)
		code = add_running(a, s, e);
	else
		code = add_part(
			path, &(struct critical_part){ .thread = s->thread, .what = s->what }, len, e);
	if (code || !a->segments)
		return code;
	if (base_grow(&path->segments, &path->max_segments, path->n_segments + 1, sizeof(*path->segments)) !=
		0)
		return err_nomem(e, "the parts of the path");
	path->segments[path->n_segments++] = *s;
	return 0;
}

int critical_add(struct critical_path *path, const struct critical_waits *c, uint32_t thread, uint64_t from,
	uint64_t to, bool segments, struct err *e)
{
	struct adding a = { path, c, segments };
	const size_t first = path->n_segments;
	int code = critical_walk(c, thread, from, to, add_segment, &a, e);

	/* they came backwards */
	for (size_t i = first, k = path->n_segments; i + 1 < k; i++, k--) {
		struct critical_segment s = path->segments[i];

		path->segments[i] = path->segments[k - 1];
		path->segments[k - 1] = s;
	}
	return code;
}

static int by_total(const void *a, const void *b)
{
	const struct critical_part *x = a, *y = b;

	return x->total != y->total       ? CMP(y->total, x->total)
	       : x->thread != y->thread   ? CMP(x->thread, y->thread)
	       : x->what != y->what       ? CMP(x->what, y->what)
	       : x->sampled != y->sampled ? CMP(x->sampled, y->sampled)
	       : x->path != y->path       ? CMP(x->path, y->path)
	       : x->kind != y->kind       ? CMP(x->kind, y->kind)
	       : x->end != y->end         ? CMP(x->end, y->end)
					  : CMP(x->waker, y->waker);
}

void critical_sort(struct critical_path *path)
{
	if (path->n)
		qsort(path->parts, path->n, sizeof(*path->parts), by_total);
}

void critical_path_free(struct critical_path *path)
{
	free(path->parts);
	free(path->segments);
	idmap_free(&path->by_place);
	idmap_free(&path->by_part);
	*path = (struct critical_path){ 0 };
}

/* --- requests --- */

static bool has_mark(const struct waits *w, const struct critical_wait *v, uint32_t mark)
{
	const struct wait_path *path = &w->paths[w->rows[w->events[v->event].row].path];

	if (path->call == mark)
		return true;
	for (uint32_t i = 0; i < path->n; i++) {
		if (w->functions[path->first + i] == mark)
			return true;
	}
	return false;
}

bool critical_next_request(const struct critical_waits *c, uint32_t thread, uint32_t mark, size_t *i,
	uint64_t from, uint64_t to, uint64_t *begin, uint64_t *end)
{
	const struct critical_wait *p = c->p + c->first[thread];
	const size_t n = c->first[thread + 1] - c->first[thread];

	while (*i < n && (p[*i].end_ns < from || !has_mark(c->w, &p[*i], mark)))
		++*i;
	for (size_t k = *i + 1; k < n && p[k].begin_ns <= to; k++) {
		if (!has_mark(c->w, &p[k], mark))
			continue;
		*begin = p[*i].end_ns;
		*end = p[k].begin_ns;
		*i = k;
		return true;
	}
	return false;
}
