/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Field numbers: protos/perfetto/trace of github.com/google/perfetto. */
#include "export/export.h"
#include "export/proto.h"

#include <errno.h>

#define SEQUENCE 1
#define CLOCK_REALTIME_ID 1
#define CLOCK_MONOTONIC_ID 3
#define TRACE_PACKET 1

enum packet {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13, /* 1: begin anew, 2: needs what is interned */
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_PERF_SAMPLE = 66,
};

enum event {
	EVENT_CATEGORY_IIDS = 3,
	EVENT_ANNOTATIONS = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK_UUID = 11,
	EVENT_EXTRA_COUNTER_VALUES = 12,
	EVENT_FLOW_IDS = 47,
	EVENT_TERMINATING_FLOW_IDS = 48,
	EVENT_CALLSTACK_IID = 56,
};

enum event_type { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 };

/* What is interned, each kind with numbers of its own. */
enum kind {
	CATEGORY,
	EVENT_NAME,
	ANNOTATION_NAME,
	ANNOTATION_VALUE,
	FUNCTION_NAME,
	MAPPING_PATH,
	SOURCE_PATH,
	BUILD_ID,
	KINDS
};

static const uint32_t fields[KINDS] = { [CATEGORY] = 1,
	[EVENT_NAME] = 2,
	[ANNOTATION_NAME] = 3,
	[ANNOTATION_VALUE] = 29,
	[FUNCTION_NAME] = 5,
	[MAPPING_PATH] = 17,
	[SOURCE_PATH] = 18,
	[BUILD_ID] = 16 };

enum { INTERNED_FRAMES = 6, INTERNED_CALLSTACKS = 7, INTERNED_MAPPINGS = 19 };

/* Tracks: each kind counts from a number of its own. */
#define TRACK_BLOCKED 1
#define TRACK_RUNNABLE 2
#define TRACK_PROCESSES (UINT64_C(1) << 32)
#define TRACK_THREADS (UINT64_C(2) << 32)
#define TRACK_INTERRUPTS (UINT64_C(3) << 32)
#define STACK_TEXTS (UINT64_C(1) << 32) /* annotation values from here on are stacks */

/* In the order of what happens at the same time. */
enum moment { BEGINS, WAKES, ENDS, FIRES };

struct happening {
	uint64_t time_ns;
	uint64_t order; /* number of the record, and the moment in the lowest two bits */
};

struct perfetto {
	struct profile *p;
	struct out *out;
	struct buf b; /* the packet that is being made */
	struct buf interned; /* what it is the first to use */
	struct buf text;
	struct happening *happenings;
	size_t n, cap;
	bool *seen[KINDS]; /* texts that have been interned */
	bool *seen_mappings, *seen_calls, *seen_stacks, *seen_stack_texts;
	uint64_t blocked, runnable; /* threads, now */
	profile_text category, wait, runs_soon, wakes, state, stack, waker, note, tid, thread, open, initial,
		preempted;
	bool failed;
};

static profile_text text(struct perfetto *x, const char *s)
{
	const profile_text id = profile_put(x->p, s);

	x->failed = x->failed || id == INTERN_NONE;
	return id == INTERN_NONE ? 0 : id;
}

static void begin_packet(struct perfetto *x)
{
	buf_reset(&x->b);
	proto_u64(&x->b, PACKET_SEQUENCE_ID, SEQUENCE);
}

static void end_packet(struct perfetto *x)
{
	struct buf *head = &x->text;

	if (x->interned.len)
		proto_str(&x->b, PACKET_INTERNED_DATA, x->interned.p, x->interned.len);
	x->failed = x->failed || x->b.failed || x->interned.failed;
	buf_reset(&x->interned);
	buf_reset(head);
	buf_uleb(head, TRACE_PACKET << 3 | 2);
	buf_uleb(head, x->b.len);
	x->failed = x->failed || head->failed;
	if (x->failed)
		return;
	out_put(x->out, head->p, head->len);
	out_put(x->out, x->b.p, x->b.len);
}

/* Interned things have numbers from 1. */
static uint64_t iid(uint64_t index)
{
	return index + 1;
}

static void put_interned(struct perfetto *x, uint32_t field, uint64_t id, const void *p, size_t len)
{
	size_t at = proto_begin(&x->interned, field);

	proto_u64(&x->interned, 1, id);
	proto_str(&x->interned, 2, p, len);
	proto_end(&x->interned, at);
}

static uint8_t nibble(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

/* Perfetto wants the bytes of a build ID. */
static void put_build_id(struct perfetto *x, uint64_t id, const char *digits, size_t len)
{
	buf_reset(&x->text);
	for (size_t i = 0; i + 1 < len; i += 2)
		buf_put(&x->text,
			&(uint8_t){ (uint8_t)(nibble(digits[i]) << 4 | (nibble(digits[i + 1]) & 15)) }, 1);
	x->failed = x->failed || x->text.failed;
	put_interned(x, fields[BUILD_ID], id, x->text.p, x->text.len);
}

/* The number of text T among those of KIND. */
static uint64_t intern(struct perfetto *x, enum kind kind, profile_text t)
{
	size_t len;
	const char *s = profile_str(x->p, t, &len);

	if (x->seen[kind][t])
		return iid(t);
	x->seen[kind][t] = true;
	if (kind == BUILD_ID)
		put_build_id(x, iid(t), s, len);
	else
		put_interned(x, fields[kind], iid(t), s, len);
	return iid(t);
}

static uint64_t intern_mapping(struct perfetto *x, uint32_t i)
{
	const struct profile_mapping *m = &x->p->mappings[i];
	const uint64_t build_id = m->build_id ? intern(x, BUILD_ID, m->build_id) : 0;
	const uint64_t path = intern(x, MAPPING_PATH, m->name);
	size_t at;

	if (x->seen_mappings[i])
		return iid(i);
	x->seen_mappings[i] = true;
	at = proto_begin(&x->interned, INTERNED_MAPPINGS);
	proto_u64(&x->interned, 1, iid(i));
	if (build_id)
		proto_u64(&x->interned, 2, build_id);
	proto_u64(&x->interned, 8, m->offset);
	proto_u64(&x->interned, 4, m->start);
	proto_u64(&x->interned, 5, m->end);
	proto_u64(&x->interned, 7, path);
	proto_end(&x->interned, at);
	return iid(i);
}

/* Call C of frame F, which is number CALL of all. */
static uint64_t intern_call(struct perfetto *x, const struct profile_frame *f, uint32_t call)
{
	const struct profile_call *c = &x->p->calls[call];
	const struct profile_mapping *m = f->mapping != PROFILE_NONE ? &x->p->mappings[f->mapping] : NULL;
	uint64_t name, file, mapping;
	size_t at;

	if (x->seen_calls[call])
		return iid(call);
	x->seen_calls[call] = true;
	name = intern(x, FUNCTION_NAME, c->name);
	file = c->file ? intern(x, SOURCE_PATH, c->file) : 0;
	mapping = m ? intern_mapping(x, f->mapping) : 0;
	at = proto_begin(&x->interned, INTERNED_FRAMES);
	proto_u64(&x->interned, 1, iid(call));
	proto_u64(&x->interned, 2, name);
	if (m)
		proto_u64(&x->interned, 3, mapping);
	proto_u64(&x->interned, 4, profile_call_address(f) - (m ? m->start - m->offset : 0));
	if (file)
		proto_u64(&x->interned, 5, file);
	if (c->line)
		proto_u64(&x->interned, 6, c->line);
	proto_end(&x->interned, at);
	return iid(call);
}

/* Outermost first. */
static uint64_t intern_stack(struct perfetto *x, uint32_t i)
{
	const struct profile *p = x->p;
	const struct profile_stack *s = &p->stacks[i];
	struct buf numbers = { 0 };

	if (x->seen_stacks[i])
		return iid(i);
	x->seen_stacks[i] = true;
	proto_u64(&numbers, 1, iid(i));
	for (uint32_t k = s->n; k-- > 0;) {
		const struct profile_frame *f = &p->frames[p->stacked[s->first + k]];

		for (uint32_t c = f->n; c-- > 0;)
			proto_u64(&numbers, 2, intern_call(x, f, f->first + c));
	}
	x->failed = x->failed || numbers.failed;
	proto_str(&x->interned, INTERNED_CALLSTACKS, numbers.p, numbers.len);
	buf_free(&numbers);
	return iid(i);
}

/* The stack as text too, "main;f;read": not every version of Perfetto shows the call stacks of slices. */
static uint64_t intern_stack_text(struct perfetto *x, uint32_t i)
{
	const struct profile *p = x->p;
	const struct profile_stack *s = &p->stacks[i];
	struct buf *b = &x->text;

	if (x->seen_stack_texts[i])
		return iid(STACK_TEXTS + i);
	x->seen_stack_texts[i] = true;
	buf_reset(b);
	for (uint32_t k = s->n; k-- > 0;) {
		const struct profile_frame *f = &p->frames[p->stacked[s->first + k]];

		for (uint32_t c = f->n; c-- > 0;) {
			size_t len;
			const char *name = profile_str(p, p->calls[f->first + c].name, &len);

			if (b->len)
				buf_put(b, ";", 1);
			buf_put(b, name, len);
		}
	}
	x->failed = x->failed || b->failed;
	put_interned(x, fields[ANNOTATION_VALUE], iid(STACK_TEXTS + i), b->p, b->len);
	return iid(STACK_TEXTS + i);
}

/* The first packet of every trace, by which stackexport knows an older one. */
static void put_start(struct perfetto *x)
{
	begin_packet(x);
	proto_u64(&x->b, PACKET_SEQUENCE_FLAGS, 1);
	end_packet(x);
}

static void put_clock(struct perfetto *x, uint64_t id, uint64_t time_ns)
{
	size_t at = proto_begin(&x->b, 1);

	proto_u64(&x->b, 1, id);
	proto_u64(&x->b, 2, time_ns);
	proto_end(&x->b, at);
}

/* Times are of CLOCK_MONOTONIC, and each event has values of both counters. */
static void put_defaults(struct perfetto *x)
{
	size_t at, inner;

	begin_packet(x);
	at = proto_begin(&x->b, PACKET_CLOCK_SNAPSHOT);
	put_clock(x, CLOCK_REALTIME_ID, x->p->start_real_ns);
	put_clock(x, CLOCK_MONOTONIC_ID, x->p->start_mono_ns);
	proto_u64(&x->b, 2, CLOCK_MONOTONIC_ID);
	proto_end(&x->b, at);
	end_packet(x);

	begin_packet(x);
	at = proto_begin(&x->b, PACKET_DEFAULTS);
	proto_u64(&x->b, 58, CLOCK_MONOTONIC_ID);
	inner = proto_begin(&x->b, 11);
	proto_u64(&x->b, 31, TRACK_BLOCKED);
	proto_u64(&x->b, 31, TRACK_RUNNABLE);
	proto_end(&x->b, inner);
	proto_end(&x->b, at);
	end_packet(x);
}

static void put_string(struct perfetto *x, uint32_t field, profile_text t)
{
	size_t len;
	const char *s = profile_str(x->p, t, &len);

	proto_str(&x->b, field, s, len);
}

static size_t begin_track(struct perfetto *x, uint64_t uuid)
{
	size_t at;

	begin_packet(x);
	at = proto_begin(&x->b, PACKET_TRACK_DESCRIPTOR);
	proto_u64(&x->b, 1, uuid);
	return at;
}

static void end_track(struct perfetto *x, size_t at)
{
	proto_end(&x->b, at);
	end_packet(x);
}

static void put_counter(struct perfetto *x, uint64_t uuid, const char *name)
{
	size_t at = begin_track(x, uuid);

	proto_str(&x->b, 2, name, strlen(name));
	proto_end(&x->b, proto_begin(&x->b, 8));
	end_track(x, at);
}

static void put_process(struct perfetto *x, size_t i)
{
	const struct profile_process *p = &x->p->processes[i];
	size_t at = begin_track(x, TRACK_PROCESSES + i), inner = proto_begin(&x->b, 3);

	proto_u64(&x->b, 1, p->pid);
	if (p->exe)
		put_string(x, 2, p->exe);
	put_string(x, 6, p->comm);
	proto_end(&x->b, inner);
	end_track(x, at);
}

static void put_thread(struct perfetto *x, size_t i)
{
	const struct profile_thread *t = &x->p->threads[i];
	size_t at = begin_track(x, TRACK_THREADS + i), inner;

	proto_u64(&x->b, 5, TRACK_PROCESSES + t->process);
	inner = proto_begin(&x->b, 4);
	proto_u64(&x->b, 1, x->p->processes[t->process].pid);
	proto_u64(&x->b, 2, t->tid);
	put_string(x, 5, t->comm);
	proto_end(&x->b, inner);
	end_track(x, at);
}

/* Wakers that are no thread have a track for each of their names. */
static uint64_t waker_track(const struct profile_waker *w)
{
	return w->thread != PROFILE_NONE ? TRACK_THREADS + w->thread : TRACK_INTERRUPTS + w->name;
}

static void put_tracks(struct perfetto *x)
{
	const struct profile *p = x->p;
	struct idmap names = { 0 };

	put_counter(x, TRACK_BLOCKED, "threads blocked");
	put_counter(x, TRACK_RUNNABLE, "threads runnable");
	for (size_t i = 0; i < p->n_processes; i++)
		put_process(x, i);
	for (size_t i = 0; i < p->n_threads; i++)
		put_thread(x, i);
	for (size_t i = 0; i < p->n_wakers; i++) {
		bool added = false;
		size_t at;

		if (p->wakers[i].thread != PROFILE_NONE)
			continue;
		x->failed |= idmap_put(&names, 0, p->wakers[i].name, 0, &added) == UINT32_MAX;
		if (!added)
			continue;
		at = begin_track(x, waker_track(&p->wakers[i]));
		put_string(x, 2, p->wakers[i].name);
		end_track(x, at);
	}
	idmap_free(&names);
}

static void annotate(struct perfetto *x, profile_text name, uint64_t value_iid)
{
	const uint64_t name_iid = intern(x, ANNOTATION_NAME, name);
	size_t at = proto_begin(&x->b, EVENT_ANNOTATIONS);

	proto_u64(&x->b, 1, name_iid);
	proto_u64(&x->b, 17, value_iid);
	proto_end(&x->b, at);
}

static void annotate_text(struct perfetto *x, profile_text name, profile_text value)
{
	if (value)
		annotate(x, name, intern(x, ANNOTATION_VALUE, value));
}

static void annotate_number(struct perfetto *x, profile_text name, uint64_t value)
{
	const uint64_t name_iid = intern(x, ANNOTATION_NAME, name);
	size_t at = proto_begin(&x->b, EVENT_ANNOTATIONS);

	proto_u64(&x->b, 1, name_iid);
	proto_u64(&x->b, 3, value);
	proto_end(&x->b, at);
}

/* An event on TRACK; the caller adds to it, and ends it. NAME 0 = none. */
static size_t begin_event(
	struct perfetto *x, uint64_t time_ns, enum event_type type, uint64_t track, profile_text name)
{
	size_t at;

	begin_packet(x);
	proto_u64(&x->b, PACKET_TIMESTAMP, time_ns);
	proto_u64(&x->b, PACKET_SEQUENCE_FLAGS, 2);
	at = proto_begin(&x->b, PACKET_TRACK_EVENT);
	proto_u64(&x->b, EVENT_TYPE, type);
	proto_u64(&x->b, EVENT_TRACK_UUID, track);
	if (name) {
		proto_u64(&x->b, EVENT_CATEGORY_IIDS, intern(x, CATEGORY, x->category));
		proto_u64(&x->b, EVENT_NAME_IID, intern(x, EVENT_NAME, name));
	}
	proto_u64(&x->b, EVENT_EXTRA_COUNTER_VALUES, x->blocked);
	proto_u64(&x->b, EVENT_EXTRA_COUNTER_VALUES, x->runnable);
	return at;
}

static void end_event(struct perfetto *x, size_t at)
{
	proto_end(&x->b, at);
	end_packet(x);
}

/* Was the thread on a run queue in the last part of R, or all the time? */
static bool was_runnable(const struct profile_record *r)
{
	return r->is_split && r->runnable_ns;
}

static void put_begin(struct perfetto *x, const struct profile_record *r, uint64_t time_ns)
{
	size_t at;

	x->blocked++;
	at = begin_event(x, time_ns, SLICE_BEGIN, TRACK_THREADS + r->thread, r->kind ? r->kind : x->wait);
	if (r->comm != x->p->threads[r->thread].comm)
		annotate_text(x, x->thread, r->comm);
	annotate_text(x, x->state, r->state);
	if (r->open || r->initial || r->preempted)
		annotate_text(x, x->note, r->preempted ? x->preempted : r->open ? x->open : x->initial);
	if (r->waker != PROFILE_NONE)
		annotate_text(x, x->waker, x->p->wakers[r->waker].name);
	annotate(x, x->stack, intern_stack_text(x, r->stack));
	proto_u64(&x->b, EVENT_CALLSTACK_IID, intern_stack(x, r->stack));
	end_event(x, at);
}

/* An arrow leads from the waker at the wake-up to the slice that begins then, or to the end of the wait. */
static void put_wake(struct perfetto *x, const struct profile_record *r, uint64_t time_ns, uint64_t flow)
{
	const struct profile_thread *t = &x->p->threads[r->thread];
	size_t at;

	if (r->waker != PROFILE_NONE) {
		at = begin_event(x, time_ns, INSTANT, waker_track(&x->p->wakers[r->waker]), x->wakes);
		annotate_text(x, x->thread, r->comm);
		annotate_number(x, x->tid, t->tid);
		annotate(x, x->stack, intern_stack_text(x, x->p->wakers[r->waker].stack));
		proto_fixed64(&x->b, EVENT_FLOW_IDS, flow);
		end_event(x, at);
	}
	if (!was_runnable(r))
		return;
	x->blocked--;
	x->runnable++;
	at = begin_event(x, time_ns, SLICE_BEGIN, TRACK_THREADS + r->thread, x->runs_soon);
	if (r->waker != PROFILE_NONE)
		proto_fixed64(&x->b, EVENT_TERMINATING_FLOW_IDS, flow);
	end_event(x, at);
}

static void put_end(struct perfetto *x, const struct profile_record *r, uint64_t time_ns, uint64_t flow)
{
	size_t at;

	if (was_runnable(r)) {
		x->runnable--;
		end_event(x, begin_event(x, time_ns, SLICE_END, TRACK_THREADS + r->thread, 0));
	} else {
		x->blocked--;
	}
	at = begin_event(x, time_ns, SLICE_END, TRACK_THREADS + r->thread, 0);
	if (!was_runnable(r) && r->waker != PROFILE_NONE)
		proto_fixed64(&x->b, EVENT_TERMINATING_FLOW_IDS, flow);
	end_event(x, at);
}

static void put_sample(struct perfetto *x, const struct profile_record *r)
{
	const struct profile *p = x->p;
	const struct profile_thread *t = &p->threads[r->thread];
	const struct profile_stack *s = &p->stacks[r->stack];
	const bool kernel = p->frames[p->stacked[s->first]].kernel;
	size_t at;

	begin_packet(x);
	proto_u64(&x->b, PACKET_TIMESTAMP, r->first_ns);
	proto_u64(&x->b, PACKET_SEQUENCE_FLAGS, 2);
	at = proto_begin(&x->b, PACKET_PERF_SAMPLE);
	proto_u64(&x->b, 2, p->processes[t->process].pid);
	proto_u64(&x->b, 3, t->tid);
	proto_u64(&x->b, 4, intern_stack(x, r->stack));
	proto_u64(&x->b, 5, kernel ? 1 : 2);
	proto_end(&x->b, at);
	end_packet(x);
}

static int by_time(const void *a, const void *b)
{
	const struct happening *x = a, *y = b;
	int c = CMP(x->time_ns, y->time_ns);

	return c ? c : CMP(x->order, y->order);
}

static void add(struct perfetto *x, uint64_t time_ns, size_t record, enum moment moment)
{
	if (base_grow(&x->happenings, &x->cap, x->n + 1, sizeof(*x->happenings)) != 0)
		x->failed = true;
	else
		x->happenings[x->n++] = (struct happening){ time_ns, (uint64_t)record << 2 | moment };
}

/* Returns how many waits and samples have no time of their own. */
static uint64_t collect(struct perfetto *x)
{
	uint64_t sums = 0;

	for (size_t i = 0; i < x->p->n_records && !x->failed; i++) {
		const struct profile_record *r = &x->p->records[i];
		const uint64_t end_ns = add_saturating(r->first_ns, r->total_ns);

		if (r->count != 1) {
			sums += r->count;
		} else if (r->is_sample) {
			add(x, r->first_ns, i, FIRES);
		} else {
			add(x, r->first_ns, i, BEGINS);
			if (was_runnable(r) || r->waker != PROFILE_NONE)
				add(x, end_ns - r->runnable_ns, i, WAKES);
			add(x, end_ns, i, ENDS);
		}
	}
	if (x->n)
		qsort(x->happenings, x->n, sizeof(*x->happenings), by_time);
	return sums;
}

static void put_happenings(struct perfetto *x)
{
	for (size_t i = 0; i < x->n && !x->failed && !x->out->code; i++) {
		const struct happening *h = &x->happenings[i];
		const uint64_t record = h->order >> 2;
		const struct profile_record *r = &x->p->records[record];

		switch ((enum moment)(h->order & 3)) {
		case BEGINS:
			put_begin(x, r, h->time_ns);
			break;
		case WAKES:
			put_wake(x, r, h->time_ns, record + 1);
			break;
		case ENDS:
			put_end(x, r, h->time_ns, record + 1);
			break;
		case FIRES:
			put_sample(x, r);
			break;
		}
	}
}

static void name_things(struct perfetto *x)
{
	x->category = text(x, "offcpu");
	x->wait = text(x, "wait");
	x->runs_soon = text(x, "runnable");
	x->wakes = text(x, "wakes");
	x->state = text(x, "state");
	x->stack = text(x, "stack");
	x->waker = text(x, "waker");
	x->note = text(x, "note");
	x->tid = text(x, "tid");
	x->thread = text(x, "thread");
	x->open = text(x, "open: it had not ended when the recording did");
	x->initial = text(x, "initial: it had begun before the recording");
	x->preempted = text(x, "preempted: the thread lost the CPU");
}

static bool *flags(struct perfetto *x, size_t n)
{
	bool *p = calloc(n + 1, sizeof(*p));

	x->failed = x->failed || !p;
	return p;
}

int export_perfetto(struct profile *p, struct out *out, uint64_t *sums, struct err *e)
{
	struct perfetto x = { .p = p, .out = out };

	name_things(&x);
	for (enum kind k = 0; k < KINDS; k++)
		x.seen[k] = flags(&x, p->texts.n);
	x.seen_mappings = flags(&x, p->n_mappings);
	x.seen_calls = flags(&x, p->n_calls);
	x.seen_stacks = flags(&x, p->n_stacks);
	x.seen_stack_texts = flags(&x, p->n_stacks);
	*sums = collect(&x);
	if (!x.failed) {
		put_start(&x);
		put_defaults(&x);
		put_tracks(&x);
		put_happenings(&x);
	}
	for (enum kind k = 0; k < KINDS; k++)
		free(x.seen[k]);
	free(x.seen_mappings);
	free(x.seen_calls);
	free(x.seen_stacks);
	free(x.seen_stack_texts);
	free(x.happenings);
	buf_free(&x.b);
	buf_free(&x.interned);
	buf_free(&x.text);
	return x.failed ? err_nomem(e, "the trace") : 0;
}
