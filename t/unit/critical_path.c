/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paths that are known because the schedules were made so; and, for records that contradict one another, what
 * holds of any path: its parts follow one another, fill the window, and say nothing that the records deny.
 */
#include "base/tap.h"
#include "base/text.h"
#include "report/critical_path.h"

#include <string.h>

#define THREADS 8
#define EVENTS 64
#define SAMPLES 64
#define PLACES 3 /* of samples, of each thread */

/* Waits, of rows that are threads: each thread waits in one place. */
struct made {
	struct waits w;
	struct wait_thread threads[THREADS];
	struct wait_row rows[THREADS * (1 + PLACES)]; /* of waits, then of samples */
	struct wait_path paths[THREADS + PLACES];
	struct wait_sample samples[SAMPLES];
	struct wait_event events[EVENTS];
	struct wait_waker wakers[THREADS + 3]; /* of each thread, then these: */
};

enum { TIMER = THREADS, STRANGER, HIDDEN, NOBODY };

static void make(struct made *m)
{
	*m = (struct made){ 0 };
	m->w = (struct waits){ .threads = m->threads,
		.n_threads = THREADS,
		.rows = m->rows,
		.n_rows = ARRAY_LEN(m->rows),
		.samples = m->samples,
		.paths = m->paths,
		.n_paths = ARRAY_LEN(m->paths),
		.events = m->events,
		.wakers = m->wakers,
		.n_wakers = ARRAY_LEN(m->wakers) };
	intern_put(&m->w.strings, "", 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		m->rows[i] = (struct wait_row){ .path = i, .thread = i };
		m->wakers[i].thread = i;
		for (uint32_t k = 0; k < PLACES; k++)
			m->rows[THREADS + i * PLACES + k] =
				(struct wait_row){ .path = THREADS + k, .thread = i };
	}
	m->wakers[TIMER] = (struct wait_waker){ intern_put(&m->w.strings, "[timer]", 7), WAITS_NONE, true };
	m->wakers[STRANGER] = (struct wait_waker){ intern_put(&m->w.strings, "sh", 2), WAITS_NONE, false };
	m->wakers[HIDDEN] =
		(struct wait_waker){ intern_put(&m->w.strings, "[hidden]", 8), WAITS_NONE, false };
}

/* THREAD waits in [FROM, TO), the last RUNNABLE of it on a run queue. */
static struct wait_event *add(
	struct made *m, uint32_t thread, uint64_t from, uint64_t to, uint64_t runnable, uint32_t waker)
{
	struct wait_event *v = &m->events[m->w.n_events++];

	*v = (struct wait_event){ .begin_ns = from,
		.len_ns = to - from,
		.runnable_ns = runnable,
		.row = thread,
		.waker = waker == NOBODY ? WAITS_NONE : waker };
	return v;
}

/* The clock fired at AT, when THREAD executed PLACE. */
static void fire(struct made *m, uint32_t thread, uint64_t at, uint32_t place)
{
	m->samples[m->w.n_samples++] =
		(struct wait_sample){ .at_ns = at, .row = THREADS + thread * PLACES + place };
}

/* The path as text: "A running 0-5, B blocked 5-7 by-interrupt". */
static const char *path_of(const struct made *m, uint32_t thread, uint64_t from, uint64_t to, struct buf *b)
{
	static const char *const whats[] = { "run", "queue", "wait", "none" };
	static const char *const ends[] = { "interrupt", "open", "no-waker", "hidden", "stranger",
		"contradiction" };
	struct critical_waits c = { 0 };
	struct critical_path path = { 0 };

	buf_reset(b);
	if (critical_make(&c, &m->w, NULL) || critical_add(&path, &c, thread, from, to, true, NULL))
		abort();
	for (size_t i = 0; i < path.n_segments; i++) {
		const struct critical_segment *s = &path.segments[i];

		buftext_printf(b, "%s%c %s %llu-%llu", i ? ", " : "", 'A' + (int)s->thread, whats[s->what],
			(unsigned long long)s->from_ns, (unsigned long long)s->to_ns);
		if (s->what == CRITICAL_BLOCKED)
			buftext_printf(b, " %s", ends[s->end]);
	}
	buf_put(b, "", 1);
	critical_path_free(&path);
	critical_free(&c);
	return b->failed ? "out of memory" : (const char *)b->p;
}

static void known(struct tap *t)
{
	struct buf b = { 0 };
	struct made m;

	make(&m);
	tap_eq_str(t, path_of(&m, 0, 10, 20, &b), "A none 10-20",
		"a thread without waits: nothing is known of it");
	add(&m, 0, 10, 20, 2, TIMER);
	tap_eq_str(t, path_of(&m, 0, 0, 30, &b),
		"A none 0-10, A wait 10-18 interrupt, A queue 18-20, A none 20-30",
		"before its first wait and after its last one nothing is known");
	add(&m, 0, 25, 27, 0, TIMER);
	tap_eq_str(t, path_of(&m, 0, 10, 27, &b),
		"A wait 10-18 interrupt, A queue 18-20, A run 20-25, A wait 25-27 interrupt",
		"between two waits it runs");
	tap_eq_str(t, path_of(&m, 0, 12, 19, &b), "A wait 12-18 interrupt, A queue 18-19",
		"a window may begin and end within a wait");
	tap_eq_str(t, path_of(&m, 0, 12, 12, &b), "", "an empty window has no path");
	intern_free(&m.w.strings);

	make(&m);
	add(&m, 0, 0, 100, 1, 1); /* A waits for B, */
	add(&m, 1, 10, 30, 5, TIMER); /* which sleeps, */
	add(&m, 1, 50, 80, 0, 2); /* and waits for C */
	add(&m, 2, 40, 60, 10, TIMER);
	tap_eq_str(t, path_of(&m, 0, 0, 100, &b),
		"B none 0-10, B wait 10-25 interrupt, B queue 25-30, B run 30-50, C queue 50-60, C run "
		"60-80, "
		"B run 80-99, A queue 99-100",
		"a wait is what its waker did in the meantime, and so on");
	tap_eq_str(t, path_of(&m, 0, 20, 70, &b),
		"B wait 20-25 interrupt, B queue 25-30, B run 30-50, C queue 50-60, C run 60-70",
		"also where the window ends before the wake-up");
	intern_free(&m.w.strings);

	make(&m);
	add(&m, 0, 0, 100, 1, STRANGER);
	add(&m, 1, 0, 100, 1, HIDDEN);
	add(&m, 2, 0, 100, 1, NOBODY);
	add(&m, 3, 0, 100, WAIT_NOT_KNOWN, NOBODY)->open = true;
	add(&m, 4, 0, 100, 100, NOBODY);
	add(&m, 5, 0, 100, WAIT_NOT_KNOWN, 6);
	add(&m, 6, 0, 50, 1, TIMER);
	add(&m, 7, 0, 0, 0, TIMER);
	tap_eq_str(t, path_of(&m, 0, 0, 100, &b), "A wait 0-99 stranger, A queue 99-100",
		"a waker that is not recorded is not followed");
	tap_eq_str(
		t, path_of(&m, 1, 0, 100, &b), "B wait 0-99 hidden, B queue 99-100", "nor is a hidden one");
	tap_eq_str(t, path_of(&m, 2, 0, 100, &b), "C wait 0-99 no-waker, C queue 99-100", "nor none");
	tap_eq_str(
		t, path_of(&m, 3, 0, 100, &b), "D wait 0-100 open", "a wait that did not end has no waker");
	tap_eq_str(t, path_of(&m, 4, 0, 100, &b), "E queue 0-100", "a thread that lost the CPU is runnable");
	tap_eq_str(t, path_of(&m, 5, 0, 100, &b), "G wait 0-49 interrupt, G queue 49-50, G run 50-100",
		"where it is not known when the thread was woken, that is the end of the wait");
	m.events[5].waker = 7;
	tap_eq_str(t, path_of(&m, 5, 0, 100, &b), "F wait 0-100 stranger", "a wait of no length is none");
	intern_free(&m.w.strings);

	make(&m);
	for (uint64_t i = 0; i < 5; i++) { /* one runs while the other waits */
		add(&m, 0, 10 + i * 20, 20 + i * 20, 1, 1);
		add(&m, 1, 20 + i * 20, 30 + i * 20, 1, 0);
	}
	tap_eq_str(t, path_of(&m, 0, 10, 50, &b),
		"B none 10-19, A queue 19-20, A run 20-30, B run 30-39, A queue 39-40, A run 40-50",
		"two threads that wake one another: each runs while the other waits");
	intern_free(&m.w.strings);
	buf_free(&b);
}

static uint32_t state = 1;

static uint32_t rnd(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % below;
}

/* --- random schedules that can have been --- */

/*
 * Threads in which one wakes the other, simulated tick by tick; and the path of each thread up to now as it
 * is by definition: PATH[thread][tick] is who was on it, and what it did.
 */
#define TICKS 400

struct mark {
	uint32_t thread;
	enum critical_what what;
};

enum doing { RUNS, WAITS, QUEUED };

static bool simulate(struct made *m, unsigned int *mismatches, unsigned int *others)
{
	static struct mark path[THREADS][TICKS];
	enum doing doing[THREADS] = { RUNS };
	uint64_t since[THREADS] = { 0 }, woke[THREADS] = { 0 };
	uint32_t by[THREADS] = { 0 };
	const uint32_t n = 2 + rnd(THREADS - 1);
	struct critical_waits c = { 0 };
	bool fine = true;

	make(m);
	memset(path, 0, sizeof(path));
	for (uint64_t now = 0; now < TICKS; now++) {
		/* at the beginning of a tick: wake-ups, by threads that run, then switches */
		for (uint32_t i = 0; i < n; i++) {
			uint32_t other = rnd(n + 1);

			if (doing[i] != WAITS || since[i] == now)
				continue;
			if (other == n ? rnd(8) == 0 : other != i && doing[other] == RUNS && rnd(4) == 0) {
				doing[i] = QUEUED;
				woke[i] = now;
				by[i] = other == n ? TIMER : other;
				/* the wait was what the waker did meanwhile */
				if (other < n)
					memcpy(&path[i][since[i]], &path[other][since[i]],
						(now - since[i]) * sizeof(**path));
			}
		}
		for (uint32_t i = 0; i < n; i++) {
			if (doing[i] == QUEUED && rnd(2) == 0 && m->w.n_events < EVENTS) {
				add(m, i, since[i], now, now - woke[i], by[i]);
				if (since[i] == now)
					m->w.n_events--;
				doing[i] = RUNS;
			} else if (doing[i] == RUNS && rnd(6) == 0 && m->w.n_events + n < EVENTS) {
				doing[i] = WAITS;
				since[i] = now;
			}
			path[i][now] = (struct mark){ i, doing[i] == RUNS    ? CRITICAL_RUNNING
							 : doing[i] == WAITS ? CRITICAL_BLOCKED
									     : CRITICAL_RUNNABLE };
		}
	}
	if (critical_make(&c, &m->w, NULL) != 0)
		abort();
	for (uint32_t i = 0; i < n; i++) {
		struct critical_path p = { 0 };
		uint64_t from = rnd(TICKS / 2), to;

		/* the end of its last wait: later nothing is known */
		if (c.first[i] == c.first[i + 1])
			continue;
		to = c.p[c.first[i + 1] - 1].end_ns;
		if (from >= to)
			continue;
		if (critical_add(&p, &c, i, from, to, true, NULL) != 0)
			abort();
		for (size_t k = 0; k < p.n_segments; k++) {
			const struct critical_segment *s = &p.segments[k];

			for (uint64_t at = s->from_ns; at < s->to_ns; at++) {
				/* before its first wait a thread ran here */
				enum critical_what what =
					s->what == CRITICAL_OUTSIDE ? CRITICAL_RUNNING : s->what;

				*others += s->thread != i;
				if (path[i][at].thread != s->thread || path[i][at].what != what) {
					++*mismatches;
					fine = false;
				}
			}
		}
		critical_path_free(&p);
	}
	critical_free(&c);
	intern_free(&m->w.strings);
	return fine;
}

/* --- random records that cannot have been --- */

static bool is_sound(const struct made *m, uint32_t thread, uint64_t from, uint64_t to)
{
	struct critical_waits c = { 0 };
	struct critical_path path = { 0 };
	uint64_t at = from;
	wait_sum parts = 0, whats = 0, blocked = 0, sampled = 0;
	bool sound = true;

	if (critical_make(&c, &m->w, NULL) || critical_add(&path, &c, thread, from, to, true, NULL))
		abort();
	for (size_t i = 0; i < path.n_segments; i++) {
		const struct critical_segment *s = &path.segments[i];
		const struct wait_event *v = s->event == WAITS_NONE ? NULL : &m->events[s->event];

		sound &= s->from_ns == at && s->to_ns > at && s->thread < THREADS;
		at = s->to_ns;
		sound &= (v != NULL) == (s->what == CRITICAL_RUNNABLE || s->what == CRITICAL_BLOCKED);
		/* it is in that wait */
		if (v)
			sound &= s->from_ns >= v->begin_ns && s->to_ns <= v->begin_ns + v->len_ns &&
				 v->row == s->thread;
		/* it runs while none of its waits says otherwise */
		for (size_t k = 0; k < m->w.n_events && !v; k++)
			sound &= m->events[k].row != s->thread || !m->events[k].len_ns ||
				 m->events[k].begin_ns >= s->to_ns ||
				 m->events[k].begin_ns + m->events[k].len_ns <= s->from_ns;
	}
	sound &= at == to && path.n_segments <= 3 * m->w.n_events + 1;
	for (size_t i = 0; i < path.n; i++)
		parts += path.parts[i].total;
	for (size_t i = 0; i < CRITICAL_WHATS; i++)
		whats += path.of[i];
	for (size_t i = 0; i < CRITICAL_ENDS; i++)
		blocked += path.blocked[i];
	for (size_t i = 0; i < path.n; i++) {
		const struct critical_part *p = &path.parts[i];

		sampled += p->sampled ? p->total : 0;
		sound &= !p->sampled || (p->what == CRITICAL_RUNNING && p->path >= THREADS);
		sound &= p->count && p->max_ns <= p->total && (p->count > 1 || p->max_ns == p->total);
	}
	sound &= sampled == path.sampled && sampled <= path.of[CRITICAL_RUNNING] &&
		 path.n_samples <= m->w.n_samples;
	sound &= (path.n_samples != 0) == (path.sampled != 0);
	sound &= parts == to - from && whats == parts && path.total == parts &&
		 blocked == path.of[CRITICAL_BLOCKED];
	for (size_t i = 0; i < THREADS; i++)
		sound &= !c.on_path[i];
	critical_path_free(&path);
	critical_free(&c);
	return sound;
}

static void any(struct tap *t)
{
	unsigned int bad = 0, mismatches = 0, others = 0;
	struct made m;

	for (unsigned int i = 0; i < 3000; i++)
		bad += !simulate(&m, &mismatches, &others);
	if (bad)
		tap_diag("%u schedules, %u ticks differ", bad, mismatches);
	tap_ok(t, !bad, "of 3000 random schedules, the path is what the simulation followed");
	tap_ok(t, others > 100000, "%u ticks of them in other threads", others);
	bad = 0;
	for (unsigned int i = 0; i < 3000; i++) {
		/* far apart, or so that most overlap */
		const uint32_t span = rnd(2) ? 100 : 100000000;
		const uint64_t base = rnd(3) ? 0 : UINT64_MAX - 3ull * span;
		const uint32_t n = 1 + rnd(EVENTS);
		uint64_t from = base + rnd(span), to = from + 1 + rnd(span);

		make(&m);
		for (uint32_t k = 0; k < n; k++) {
			uint64_t begin = base + rnd(span), len = rnd(4) ? rnd(span / 5) : rnd(span);

			add(&m, rnd(THREADS), begin, begin + len,
				rnd(4)   ? rnd(span / 10)
				: rnd(2) ? WAIT_NOT_KNOWN
					 : len,
				rnd(NOBODY + 1));
		}
		for (uint32_t k = rnd(SAMPLES); k--;)
			fire(&m, rnd(THREADS), base + rnd(span), rnd(PLACES));
		for (uint32_t k = 0; k < THREADS; k++)
			bad += !is_sound(&m, k, from, to);
		intern_free(&m.w.strings);
	}
	tap_eq_u64(t, bad, 0,
		"whatever the records and samples are, the parts follow one another, fill the window and "
		"deny no "
		"record");
}

static void slack(struct tap *t)
{
	struct buf b = { 0 };
	struct made m;

	make(&m);
	add(&m, 0, 0, 10000000, 1000000, 1); /* noted as woken at 9 ms, */
	add(&m, 1, 8500000, 20000000, 0, TIMER); /* when B had begun to wait */
	tap_eq_str(t, path_of(&m, 0, 0, 10000000, &b),
		"B none 0-8500000, A queue 8500000-9000000, A queue 9000000-10000000",
		"a waker that waits when the wake-up is noted has woken the thread before");
	m.events[1].begin_ns = 7000000;
	tap_eq_str(t, path_of(&m, 0, 0, 10000000, &b),
		"A wait 0-9000000 contradiction, A queue 9000000-10000000",
		"not if it has waited for longer than that takes");
	m.events[1].len_ns = 2500000;
	tap_eq_str(t, path_of(&m, 0, 0, 10000000, &b),
		"B none 0-7000000, B wait 7000000-9000000 interrupt, A queue 9000000-10000000",
		"a waker whose wait is over before the thread runs has woken it later than is noted");
	intern_free(&m.w.strings);

	make(&m);
	add(&m, 0, 0, 2000000, 0, 1);
	add(&m, 1, 0, 2000000, 0, 0);
	tap_eq_str(t, path_of(&m, 0, 0, 2000000, &b), "B wait 0-2000000 contradiction",
		"two threads that wait for one another all the time: there is no loop");
	tap_eq_str(t, path_of(&m, 0, 0, 50, &b), "B wait 0-50 contradiction", "nor within their waits");
	intern_free(&m.w.strings);

	make(&m);
	add(&m, 0, 1000, 9000, 0, 1); /* A waits for B, which it had woken before: */
	add(&m, 1, 0, 2000, 500, 0); /* as noted, a little later */
	tap_eq_str(t, path_of(&m, 0, 1000, 9000, &b), "B queue 1000-1500, B queue 1500-2000, B run 2000-9000",
		"a thread that was woken by one that waits for it is runnable since then");
	m.events[1].begin_ns = 1200;
	m.events[1].len_ns = 800;
	tap_eq_str(t, path_of(&m, 0, 1000, 9000, &b),
		"B none 1000-1200, B wait 1200-1500 contradiction, B queue 1500-2000, B run 2000-9000",
		"not if it began to wait after that");
	intern_free(&m.w.strings);
	buf_free(&b);
}

/* The parts that are running, as text: "A 3 of place 0 in 1, ..." */
static const char *running_of(const struct made *m, uint64_t from, uint64_t to, struct buf *b)
{
	struct critical_waits c = { 0 };
	struct critical_path path = { 0 };

	buf_reset(b);
	if (critical_make(&c, &m->w, NULL) || critical_add(&path, &c, 0, from, to, false, NULL))
		abort();
	critical_sort(&path);
	for (size_t i = 0; i < path.n; i++) {
		const struct critical_part *p = &path.parts[i];

		if (p->what != CRITICAL_RUNNING)
			continue;
		buftext_printf(b, "%s%c %llu", b->len ? ", " : "", 'A' + (int)p->thread,
			(unsigned long long)p->total);
		if (p->sampled)
			buftext_printf(b, " place %u", p->path - THREADS);
		buftext_printf(b, " in %llu up to %llu", (unsigned long long)p->count,
			(unsigned long long)p->max_ns);
	}
	buf_put(b, "", 1);
	critical_path_free(&path);
	critical_free(&c);
	return b->failed ? "out of memory" : (const char *)b->p;
}

static void samples(struct tap *t)
{
	struct buf b = { 0 };
	struct made m;

	make(&m);
	add(&m, 0, 0, 10, 0, TIMER);
	add(&m, 0, 20, 30, 0, TIMER);
	add(&m, 0, 37, 40, 0, TIMER);
	add(&m, 0, 50, 60, 0, TIMER);
	fire(&m, 0, 19, 0);
	fire(&m, 0, 11, 1);
	fire(&m, 0, 10, 0);
	tap_eq_str(t, running_of(&m, 0, 60, &b),
		"A 17 in 2 up to 10, A 7 place 0 in 1 up to 7, A 3 place 1 in 1 up to 3",
		"a running part is divided among its samples, to the nanosecond; one without samples is not");
	fire(&m, 0, 30, 0);
	fire(&m, 0, 36, 0);
	tap_eq_str(t, running_of(&m, 0, 60, &b),
		"A 14 place 0 in 2 up to 7, A 10 in 1 up to 10, A 3 place 1 in 1 up to 3",
		"a place counts once in each part, with what it has of it");
	fire(&m, 0, 45, 2);
	tap_eq_str(
		t, running_of(&m, 47, 60, &b), "A 3 in 1 up to 3", "a sample before the window says nothing");
	m.w.n_samples = 0;
	fire(&m, 0, 9, 0); /* while it waits, */
	fire(&m, 0, 20, 0);
	fire(&m, 1, 15, 0); /* of another thread, */
	fire(&m, 0, 65, 0); /* after its last wait */
	tap_eq_str(t, running_of(&m, 0, 70, &b), "A 27 in 3 up to 10",
		"nor one that is not in a running part of its thread");
	intern_free(&m.w.strings);
	buf_free(&b);
}

static void requests(struct tap *t)
{
	struct critical_waits c = { 0 };
	uint64_t begin, end, sum = 0, n = 0;
	uint32_t mark, function[1];
	struct made m;
	size_t i = 0;

	make(&m);
	mark = function[0] = intern_put(&m.w.strings, "accept", 6);
	m.w.functions = function;
	m.paths[0] = (struct wait_path){ .n = 1 };
	m.rows[1].thread = 0; /* another place of the same thread */
	add(&m, 0, 0, 10, 0, TIMER);
	add(&m, 1, 12, 14, 0, TIMER);
	add(&m, 0, 20, 30, 0, TIMER);
	add(&m, 0, 31, 40, 0, TIMER);
	if (critical_make(&c, &m.w, NULL) != 0)
		abort();
	for (; critical_next_request(&c, 0, mark, &i, 0, 100, &begin, &end); n++)
		sum = sum * 10000 + begin * 100 + end;
	tap_ok(t, n == 2 && sum == 1020ull * 10000 + 3031, "requests are between two waits in a function");
	i = 0;
	tap_ok(t, !critical_next_request(&c, 0, mark, &i, 11, 30, &begin, &end),
		"and wholly within the window");
	critical_free(&c);
	intern_free(&m.w.strings);
}

int main(void)
{
	struct tap t = { 0 };

	known(&t);
	slack(&t);
	samples(&t);
	requests(&t);
	any(&t);
	return tap_done(&t);
}
