/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flame/timeline.h"
#include "base/hash.h"
#include "flame/frame.h"
#include "flame/page.h"
#include "fold/folding.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

typedef struct perfscript_str str;

static bool is(str s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.p, word, s.len) == 0;
}

static uint32_t keep(struct timeline *t, str s)
{
	return intern_put(&t->strings, s.p ? s.p : "", s.len);
}

/* --- reading: fold sums records by stack and by what distinguishes them; their times are kept beside that
 * --- */

struct reader {
	struct timeline *t;
	struct timeline_events *to;
	struct folding_client client; /* of FOLDING, with its options */
	struct folding_opts options;
	struct folding *folding;
	uint64_t end_ns; /* of all events */
};

/* What distinguishes the records of one stack, in place of a name in fold's table. No part has a newline. */
enum { LABEL_PID, LABEL_TID, LABEL_KIND, LABEL_WAKER, LABEL_FLAGS, LABEL_COMM, LABEL_PARTS };

static void on_comment(void *ctx, const char *line, size_t len)
{
	(void)ctx;
	(void)line;
	(void)len;
}

static void on_name(
	void *ctx, const struct perfscript_header *h, const struct perfscript_wait *w, struct buf *out)
{
	static const char flags[] = "01234567";
	const str flag = { flags + (w->open ? TIMELINE_OPEN : 0) + (w->initial ? TIMELINE_INITIAL : 0) +
				   (w->preempted ? TIMELINE_PREEMPTED : 0),
		1 };
	const str parts[LABEL_PARTS] = { h->pid, h->tid, w->kind, w->waker, flag, h->comm };

	(void)ctx;
	for (size_t i = 0; i < LABEL_PARTS; i++) {
		buf_put(out, "\n", i > 0);
		buf_put(out, parts[i].p, parts[i].len);
	}
}

static int on_added(void *ctx, const struct folding_added *a, const char **bad, struct err *e)
{
	const struct perfscript_wait *w = a->wait;
	struct reader *r = ctx;
	struct timeline_events *to = r->to;
	uint64_t total = w->has_total ? w->total_ns : a->weight, count = w->has_count ? w->count : 1;
	struct timeline_event *event;
	uint64_t begin;

	if (count != 1) {
		r->t->sums++;
		r->t->summed = add_saturating(r->t->summed, count);
		return 0;
	}
	if (!perfscript_time(a->header, &begin))
		*bad = "a header without a time";
	else if (begin > INT64_MAX || total > INT64_MAX - begin)
		*bad = "an end beyond 2^63 ns";
	else if (w->has_runnable && w->runnable_ns > total)
		*bad = "a runnable_ns that is greater than the whole wait";
	if (*bad)
		return 1;
	if (to->n == TIMELINE_WAITS_MAX) {
		err_set(e, -EOVERFLOW, "more than %d waits are too many for a page", TIMELINE_WAITS_MAX);
		err_hint(e, "symbolize -p or -t prints those of one process or thread");
		return -EOVERFLOW;
	}
	if (base_grow(&to->p, &to->cap, to->n + 1, sizeof(*to->p)) != 0)
		return err_nomem(e, "the waits");
	event = &to->p[to->n++];
	*event = (struct timeline_event){
		.begin_ns = begin, .total_ns = total, .runnable_ns = UINT64_MAX, .what = a->pair
	};
	if (w->has_runnable || w->preempted)
		event->runnable_ns = w->preempted ? total : w->runnable_ns;
	r->t->origin_ns = MIN(r->t->origin_ns, begin);
	r->end_ns = MAX(r->end_ns, begin + total);
	return 0;
}

static int reader_begin(struct reader *r, struct timeline *t, struct timeline_events *to, const char *event,
	bool wakers, struct err *e)
{
	*r = (struct reader){ .t = t, .to = to };
	r->client = (struct folding_client){
		.ctx = r, .comment = on_comment, .name = on_name, .added = on_added
	};
	r->options = (struct folding_opts){ .tid = true,
		.delimit = true,
		.wakers = wakers,
		.event = event,
		.frames = { .kernel = true, .jit = true, .balanced = true },
		.client = &r->client };
	return folding_new(&r->options, &r->folding, e);
}

/* A paragraph of a sample goes to its own folding. Damaged ones may go to the wrong one, which skips them. */
static int read_all(struct reader *waits, struct reader *samples, struct paragraphs *in, struct err *e)
{
	static const char sample[] = "# sample:";
	struct paragraph para;
	int code;

	while ((code = paragraphs_next(in, &para, e)) > 0) {
		bool is_sample =
			para.len >= sizeof(sample) - 1 && memcmp(para.text, sample, sizeof(sample) - 1) == 0;

		if (is_sample && !samples->folding)
			continue;
		code = folding_add(is_sample ? samples->folding : waits->folding, in, &para, e);
		if (code)
			return code;
	}
	return code;
}

/* --- what was read, in tables of its own --- */

struct build {
	struct timeline *t;
	struct idmap threads, processes, wakers, kinds;
	struct intern stacks;
	uint32_t *waker_of; /* index = stack: its waker, or TIMELINE_NONE */
	size_t max_waker_of;
};

static int no_memory(struct err *e)
{
	return err_nomem(e, "the threads and stacks");
}

/* The thread of the ids, or TIMELINE_NONE; ADD: it is added if there is none. */
static int find_thread(struct build *b, str pid, str tid, bool add, uint32_t *ret)
{
	struct timeline *t = b->t;
	uint32_t pid_id = keep(t, pid), tid_id = keep(t, tid), process, thread;
	struct idmap_slot *slot;
	bool added = false;

	*ret = TIMELINE_NONE;
	if (pid_id == INTERN_NONE || tid_id == INTERN_NONE)
		return -ENOMEM;
	slot = idmap_find(&b->threads, pid_id, tid_id);
	if (slot || !add) {
		*ret = slot ? slot->value : TIMELINE_NONE;
		return 0;
	}
	process = idmap_put(&b->processes, 0, pid_id, (uint32_t)t->n_processes, &added);
	if (process == UINT32_MAX)
		return -ENOMEM;
	if (added) {
		if (base_grow(&t->processes, &t->max_processes, t->n_processes + 1, sizeof(*t->processes)) !=
			0)
			return -ENOMEM;
		t->processes[t->n_processes++] = (struct timeline_process){ .id = pid_id };
	}
	thread = idmap_put(&b->threads, pid_id, tid_id, (uint32_t)t->n_threads, NULL);
	if (thread == UINT32_MAX ||
		base_grow(&t->threads, &t->max_threads, t->n_threads + 1, sizeof(*t->threads)) != 0)
		return -ENOMEM;
	t->threads[t->n_threads++] = (struct timeline_thread){ .id = tid_id, .process = process };
	*ret = thread;
	return 0;
}

/* "comm-pid/tid" */
static bool waker_ids(str name, str *pid, str *tid)
{
	const char *dash = memrchr(name.p, '-', name.len), *end = name.p + name.len, *slash;

	if (!name.len || name.p[0] == '[' || !dash)
		return false;
	slash = memchr(dash, '/', (size_t)(end - dash));
	if (!slash)
		return false;
	*pid = (str){ dash + 1, (size_t)(slash - dash) - 1 };
	*tid = (str){ slash + 1, (size_t)(end - slash) - 1 };
	return pid->len && tid->len;
}

static int find_waker(struct build *b, str name, uint32_t *ret)
{
	struct timeline *t = b->t;
	uint32_t id = keep(t, name);
	bool added = false;

	*ret = id == INTERN_NONE ? UINT32_MAX : idmap_put(&b->wakers, 0, id, (uint32_t)t->n_wakers, &added);
	if (*ret == UINT32_MAX)
		return -ENOMEM;
	if (!added)
		return 0;
	if (base_grow(&t->wakers, &t->max_wakers, t->n_wakers + 1, sizeof(*t->wakers)) != 0)
		return -ENOMEM;
	t->wakers[t->n_wakers++] = (struct timeline_waker){ .name = id, .thread = TIMELINE_NONE };
	return 0;
}

static int find_kind(struct build *b, str name, uint32_t *ret)
{
	struct timeline *t = b->t;
	uint32_t id;
	bool added = false;

	if (!name.len)
		name = (str){ "unknown", 7 };
	id = keep(t, name);
	if (id != INTERN_NONE && t->n_kinds >= TIMELINE_KINDS_MAX - 1 && !idmap_find(&b->kinds, 0, id))
		id = keep(t, (str){ "other", 5 });
	*ret = id == INTERN_NONE ? UINT32_MAX : idmap_put(&b->kinds, 0, id, (uint32_t)t->n_kinds, &added);
	if (*ret == UINT32_MAX)
		return -ENOMEM;
	if (!added)
		return 0;
	if (is(name, "idle"))
		t->idle = *ret;
	t->kinds[t->n_kinds++] = id;
	return 0;
}

/* The stack of fold's text, and its first waker's name: the last frame behind the first "--". */
static int find_stack(struct build *b, str text, uint32_t *ret)
{
	struct timeline *t = b->t;
	size_t known = b->stacks.n;
	str waker = { 0 };
	bool is_waker = false, ended = false;
	struct timeline_stack stack = { .first = t->n_frames };

	*ret = intern_put(&b->stacks, text.p, text.len);
	if (*ret == INTERN_NONE)
		return -ENOMEM;
	if (*ret < known)
		return 0;
	if (text.len)
		perfscript_split(&text, ';'); /* it begins with it */
	while (text.len) {
		str frame = perfscript_split(&text, ';');

		ended |= is_waker && is(frame, "--");
		is_waker |= is(frame, "--");
		if (is_waker && !ended && !is(frame, "--"))
			waker = frame;
		if (base_grow(&t->frames, &t->max_frames, t->n_frames + 1, sizeof(*t->frames)) != 0)
			return -ENOMEM;
		t->frames[t->n_frames] = keep(t, frame);
		if (t->frames[t->n_frames++] == INTERN_NONE)
			return -ENOMEM;
	}
	stack.n = (uint32_t)(t->n_frames - stack.first);
	if (base_grow(&t->stacks, &t->max_stacks, t->n_stacks + 1, sizeof(*t->stacks)) != 0 ||
		base_grow(&b->waker_of, &b->max_waker_of, t->n_stacks + 1, sizeof(*b->waker_of)) != 0)
		return -ENOMEM;
	t->stacks[t->n_stacks] = stack;
	b->waker_of[t->n_stacks] = TIMELINE_NONE;
	return waker.len ? find_waker(b, waker, &b->waker_of[t->n_stacks++]) : (t->n_stacks++, 0);
}

static int make_what(struct build *b, str label, str stack, bool is_wait, struct timeline_what *what)
{
	struct timeline *t = b->t;
	str part[LABEL_PARTS];

	for (size_t i = 0; i + 1 < LABEL_PARTS; i++)
		part[i] = perfscript_split(&label, '\n');
	part[LABEL_COMM] = label;
	*what = (struct timeline_what){ .kind = TIMELINE_NONE,
		.waker = TIMELINE_NONE,
		.flags = (uint32_t)(part[LABEL_FLAGS].p[0] - '0') };
	if (find_thread(b, part[LABEL_PID].len ? part[LABEL_PID] : (str){ "?", 1 }, part[LABEL_TID], true,
		    &what->thread) != 0 ||
		(is_wait && find_kind(b, part[LABEL_KIND], &what->kind) != 0) ||
		find_stack(b, stack, &what->stack) != 0)
		return -ENOMEM;
	what->name = keep(t, part[LABEL_COMM]);
	what->waker = b->waker_of[what->stack];
	if (what->name == INTERN_NONE)
		return -ENOMEM;
	if (what->waker == TIMELINE_NONE && part[LABEL_WAKER].len && is_wait)
		return find_waker(b, part[LABEL_WAKER], &what->waker);
	return 0;
}

static int make_whats(struct build *b, const struct reader *r, struct err *e)
{
	const struct foldtab *table = folding_table(r->folding);
	struct timeline_events *to = r->to;
	bool is_wait = to == &b->t->waits;

	to->whats = calloc(table->n + 1, sizeof(*to->whats));
	if (!to->whats)
		return no_memory(e);
	to->n_whats = table->n;
	for (size_t i = 0; i < table->n; i++) {
		str label, stack;

		label.p = intern_text(&table->names, table->pairs[i].name, &label.len);
		stack.p = intern_text(&table->stacks, table->pairs[i].stack, &stack.len);
		if (make_what(b, label, stack, is_wait, &to->whats[i]) != 0)
			return no_memory(e);
	}
	return 0;
}

/* Of those that begin at once, the order does not depend on the sort. */
static int by_begin(const void *a, const void *b)
{
	const struct timeline_event *x = a, *y = b;
	int order = CMP(x->begin_ns, y->begin_ns);

	if (!order)
		order = CMP(x->what, y->what);
	if (!order)
		order = CMP(x->total_ns, y->total_ns);
	return order ? order : CMP(x->runnable_ns, y->runnable_ns);
}

static void place(struct timeline *t, struct timeline_events *events)
{
	bool sorted = true;

	for (size_t i = 0; i < events->n; i++) {
		struct timeline_event *event = &events->p[i];

		event->begin_ns -= t->origin_ns;
		sorted &= !i || by_begin(&events->p[i - 1], event) <= 0;
	}
	if (!sorted)
		qsort(events->p, events->n, sizeof(*events->p), by_begin);
}

static void sum(struct timeline *t)
{
	for (size_t i = 0; i < t->waits.n; i++) {
		const struct timeline_event *event = &t->waits.p[i];
		const struct timeline_what *what = &t->waits.whats[event->what];
		struct timeline_thread *thread = &t->threads[what->thread];

		t->waits.total += event->total_ns;
		t->longest_ns = MAX(t->longest_ns, event->total_ns);
		thread->waits++;
		thread->name = what->name;
		thread->total += event->total_ns;
		if (what->kind == t->idle) {
			thread->idle |= thread->waits == 1;
		} else {
			thread->idle = false;
			thread->busy += event->total_ns;
			t->processes[thread->process].busy += event->total_ns;
		}
	}
	for (size_t i = 0; i < t->samples.n; i++) {
		const struct timeline_what *what = &t->samples.whats[t->samples.p[i].what];
		struct timeline_thread *thread = &t->threads[what->thread];

		t->samples.total += t->samples.p[i].total_ns;
		if (!thread->waits)
			thread->name = what->name;
	}
}

/* A process has the name of its main thread, or of the first one. */
static void name_processes(struct timeline *t)
{
	for (size_t i = 0; i < t->n_threads; i++) {
		const struct timeline_thread *thread = &t->threads[i];
		struct timeline_process *process = &t->processes[thread->process];

		if (!process->name || thread->id == process->id)
			process->name = thread->name;
	}
}

static int build(struct build *b, struct reader *waits, struct reader *samples, struct err *e)
{
	struct timeline *t = b->t;
	int code = make_whats(b, waits, e);

	if (!code && samples->folding)
		code = make_whats(b, samples, e);
	for (size_t i = 0; i < t->n_wakers && !code; i++) {
		str name, pid, tid;

		name.p = intern_text(&t->strings, t->wakers[i].name, &name.len);
		if (waker_ids(name, &pid, &tid) && find_thread(b, pid, tid, false, &t->wakers[i].thread) != 0)
			code = no_memory(e);
	}
	if (code || !(t->waits.n + t->samples.n))
		return code;
	t->span_ns = MAX(waits->end_ns, samples->end_ns) - t->origin_ns;
	if (t->span_ns > TIMELINE_SPAN_MAX) {
		err_set(e, -EOVERFLOW, "the waits are more than 104 days apart");
		err_hint(e, "recordings of different boots have no common time: draw each by itself");
		return -EOVERFLOW;
	}
	place(t, &t->waits);
	place(t, &t->samples);
	sum(t);
	name_processes(t);
	return 0;
}

static void note_malformed(struct timeline *t, const struct folding_report *r)
{
	if (!t->malformed && r->malformed) {
		t->bad_path = r->bad_path;
		t->bad_line = r->bad_line;
		t->bad_why = r->bad_why;
	}
	t->malformed = add_saturating(t->malformed, r->malformed);
}

int timeline_read(struct timeline *t, struct paragraphs *in, bool wakers, struct err *e)
{
	struct reader waits = { 0 }, samples = { 0 };
	struct build b = { .t = t };
	int code;

	*t = (struct timeline){ .origin_ns = UINT64_MAX, .idle = TIMELINE_NONE };
	if (getrandom(&t->strings.seed, sizeof(t->strings.seed), GRND_NONBLOCK) != sizeof(t->strings.seed))
		t->strings.seed = HASH_K2;
	b.stacks.seed = t->strings.seed;
	code = keep(t, (str){ 0 }) == INTERN_NONE ? no_memory(e) : 0;
	if (!code)
		code = reader_begin(&waits, t, &t->waits, "offcpu-time", wakers, e);
	if (!code && wakers)
		code = reader_begin(&samples, t, &t->samples, "cpu-clock", false, e);
	if (!code)
		code = read_all(&waits, &samples, in, e);
	if (!code) {
		note_malformed(t, folding_report(waits.folding));
		if (wakers)
			note_malformed(t, folding_report(samples.folding));
		code = build(&b, &waits, &samples, e);
	}
	folding_free(waits.folding);
	folding_free(samples.folding);
	idmap_free(&b.threads);
	idmap_free(&b.processes);
	idmap_free(&b.wakers);
	idmap_free(&b.kinds);
	intern_free(&b.stacks);
	free(b.waker_of);
	return code;
}

void timeline_free(struct timeline *t)
{
	intern_free(&t->strings);
	free(t->processes);
	free(t->threads);
	free(t->wakers);
	free(t->stacks);
	free(t->frames);
	free(t->waits.p);
	free(t->waits.whats);
	free(t->samples.p);
	free(t->samples.whats);
	*t = (struct timeline){ 0 };
}

/* --- what both pages have --- */

struct rank {
	timeline_sum process_busy, busy, total;
	uint32_t process, thread;
	bool idle;
};

static int by_rank(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;
	int order = CMP(x->idle, y->idle);

	if (!order)
		order = CMP(y->process_busy, x->process_busy);
	if (!order)
		order = CMP(x->process, y->process);
	if (!order)
		order = CMP(y->busy, x->busy);
	if (!order)
		order = CMP(y->total, x->total);
	return order ? order : CMP(x->thread, y->thread);
}

uint32_t *timeline_order(const struct timeline *t)
{
	_cleanup_free_ struct rank *ranks = calloc(t->n_threads + 1, sizeof(*ranks));
	uint32_t *order = calloc(t->n_threads + 1, sizeof(*order));

	if (!ranks || !order) {
		free(order);
		return NULL;
	}
	for (uint32_t i = 0; i < t->n_threads; i++) {
		const struct timeline_thread *thread = &t->threads[i];

		ranks[i] = (struct rank){ .process_busy = t->processes[thread->process].busy,
			.busy = thread->busy,
			.total = thread->total,
			.process = thread->process,
			.thread = i,
			.idle = thread->idle };
	}
	qsort(ranks, t->n_threads, sizeof(*ranks), by_rank);
	for (size_t i = 0; i < t->n_threads; i++)
		order[i] = ranks[i].thread;
	return order;
}

void timeline_put_string(struct out *o, const struct timeline *t, uint32_t string)
{
	size_t len;
	const char *text = intern_text(&t->strings, string, &len);

	out_char(o, '"');
	frame_put_json(o, text, len);
	out_char(o, '"');
}

void timeline_put_sum(struct out *o, const char *key, timeline_sum v)
{
	char digits[40];
	size_t n = foldtab_digits(v, digits);

	out_printf(o, "\"%s\":\"", key);
	out_put(o, digits, n);
	out_str(o, "\",\n");
}

void timeline_put_head(struct out *o, const struct timeline *t, const char *title)
{
	page_put_text(o, "title", title);
	out_printf(o, "\"origin\":\"%llu.%09llu\",\n\"span\":%llu,\n\"waits\":%zu,\n",
		(unsigned long long)(t->origin_ns / 1000000000),
		(unsigned long long)(t->origin_ns % 1000000000), (unsigned long long)t->span_ns, t->waits.n);
	timeline_put_sum(o, "total", t->waits.total);
	out_printf(o, "\"longest\":%llu,\n", (unsigned long long)t->longest_ns);
}

void timeline_put_kinds(struct out *o, const struct timeline *t)
{
	out_str(o, "\"kinds\":[");
	for (size_t i = 0; i < t->n_kinds; i++) {
		out_str(o, i ? "," : "");
		timeline_put_string(o, t, t->kinds[i]);
	}
	out_printf(o, "],\n\"idle\":%d,\n", t->idle == TIMELINE_NONE ? -1 : (int)t->idle);
}

void timeline_put_threads(struct out *o, const struct timeline *t, const uint32_t *threads, size_t n)
{
	out_str(o, "\"threads\":[");
	for (size_t i = 0; i < n; i++) {
		const struct timeline_thread *thread = &t->threads[threads[i]];
		const struct timeline_process *process = &t->processes[thread->process];

		out_str(o, i ? ",\n[" : "\n[");
		timeline_put_string(o, t, thread->name);
		out_char(o, ',');
		timeline_put_string(o, t, process->id);
		out_char(o, ',');
		timeline_put_string(o, t, thread->id);
		out_char(o, ',');
		timeline_put_string(o, t, process->name);
		out_char(o, ']');
	}
	out_str(o, "],\n");
}

void timeline_put_stacks(
	struct out *o, const struct timeline *t, const uint32_t *stacks, size_t n, uint32_t *scratch)
{
	struct page_base64 b = { .o = o };
	uint32_t names = 0, *number_1 = scratch;

	out_str(o, "\"names\":[");
	for (size_t i = 0; i < n; i++) {
		const struct timeline_stack *stack = &t->stacks[stacks[i]];

		for (uint32_t k = 0; k < stack->n; k++) {
			uint32_t name = t->frames[stack->first + k];

			if (number_1[name])
				continue;
			out_str(o, names ? ",\n" : "\n");
			timeline_put_string(o, t, name);
			number_1[name] = ++names;
		}
	}
	out_printf(o, "],\n\"nStacks\":%zu,\n\"stacks\":\"", n);
	for (size_t i = 0; i < n; i++) {
		const struct timeline_stack *stack = &t->stacks[stacks[i]];

		page_base64_uleb(&b, stack->n);
		for (uint32_t k = 0; k < stack->n; k++)
			page_base64_uleb(&b, number_1[t->frames[stack->first + k]] - 1);
	}
	page_base64_flush(&b);
	out_str(o, "\",\n");
}
