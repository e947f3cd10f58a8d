/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/tables.h"
#include "base/json.h"

#include <errno.h>
#include <string.h>

#define AHEAD 8 /* how many records ahead to prefetch */

struct tables {
	const struct wait_printer *w;
	struct out *out;
	struct buf b; /* the object that is being made */
	struct buf name;
	bool *procs, *files, *maps, *frames, *wakers; /* those that have been printed, by id */
	struct idmap threads; /* (process, tid) -> number */
	struct idmap stacks; /* see put_stack() */
	struct intern lacks; /* names in place of missing frames; their numbers follow those of the frames */
	bool failed; /* no memory */
};

static struct json begin(struct tables *t, const char *type)
{
	struct json j = { .b = &t->b };

	json_begin(&j, NULL, '{');
	json_str(&j, "type", type);
	return j;
}

static struct json begin_id(struct tables *t, const char *type, uint64_t id)
{
	struct json j = begin(t, type);

	json_u64(&j, "id", id);
	return j;
}

static void end(struct tables *t, struct json *j)
{
	json_end(j, '}');
	buf_put(&t->b, "\n", 1);
	t->failed = t->failed || t->b.failed;
	out_put(t->out, t->b.p, t->b.len);
	buf_reset(&t->b);
}

/* True the first time. */
static bool first(bool *printed, uint32_t id)
{
	bool before = printed[id];

	printed[id] = true;
	return !before;
}

static void put_process(struct tables *t, uint32_t id)
{
	const struct cap_proc *p = &t->w->c->procs[id];
	struct json j;

	if (!first(t->procs, id))
		return;
	j = begin_id(t, "process", id);
	json_u64(&j, "pid", p->tgid);
	json_u64(&j, "ns_pid", p->ns_tgid);
	json_str(&j, "comm", p->comm);
	json_str(&j, "exe", p->exe && *p->exe ? p->exe : NULL);
	json_bool(&j, "kthread", p->flags & CAPTURE_PROC_KTHREAD);
	end(t, &j);
}

/* The name of a thread at a time; its last name at UINT64_MAX. */
static const char *name_at(
	const struct tables *t, uint32_t proc, uint32_t tid, uint64_t time_ns, uint32_t *ns_tid)
{
	const struct cap_sample at = { .proc = proc, .tid = tid, .first_ns = time_ns };

	return wait_printer_comm(t->w->c, &at, ns_tid);
}

/* Into an object that refers to the thread, if it is not the last one. */
static void put_earlier_name(
	const struct tables *t, struct json *j, uint32_t proc, uint32_t tid, uint64_t time_ns)
{
	uint32_t ns_tid;
	const char *name = name_at(t, proc, tid, time_ns, &ns_tid);

	if (strcmp(name, name_at(t, proc, tid, UINT64_MAX, &ns_tid)) != 0)
		json_str(j, "comm", name);
}

static uint32_t put_thread(struct tables *t, uint32_t proc, uint32_t tid)
{
	bool added = false;
	uint32_t id = idmap_put(&t->threads, proc, tid, (uint32_t)t->threads.n, &added), ns_tid;
	const char *comm;
	struct json j;

	t->failed = t->failed || id == UINT32_MAX;
	if (!added)
		return id;
	put_process(t, proc);
	comm = name_at(t, proc, tid, UINT64_MAX, &ns_tid);
	j = begin_id(t, "thread", id);
	json_u64(&j, "process", proc);
	json_u64(&j, "tid", tid);
	json_u64(&j, "ns_tid", ns_tid);
	json_str(&j, "comm", comm);
	end(t, &j);
	return id;
}

static void put_file(struct tables *t, uint32_t id)
{
	const struct cap_file *f = &t->w->c->files[id];
	struct json j;

	if (!first(t->files, id))
		return;
	j = begin_id(t, "file", id);
	json_str(&j, "path", f->path);
	json_bytes(&j, "build_id", f->build_id.bytes, MIN(f->build_id.len, CAPTURE_BUILD_ID_MAX));
	json_bool(&j, "deleted", f->flags & CAPTURE_FILE_DELETED);
	end(t, &j);
}

static uint32_t put_mapping(struct tables *t, const struct cap_map *m)
{
	const uint32_t id = (uint32_t)(m - t->w->c->maps);
	struct json j;

	if (!first(t->maps, id))
		return id;
	put_process(t, m->proc);
	if (m->file != CAPTURE_NONE)
		put_file(t, m->file);
	j = begin_id(t, "mapping", id);
	json_u64(&j, "process", m->proc);
	if (m->file != CAPTURE_NONE)
		json_u64(&j, "file", m->file);
	else
		json_null(&j, "file");
	json_address(&j, "start", m->start);
	json_address(&j, "end", m->end);
	json_address(&j, "offset", m->offset);
	end(t, &j);
	return id;
}

/* NAME is that of text. */
static void put_name(struct tables *t, struct json *j)
{
	buf_put(&t->name, "", 1);
	t->failed = t->failed || t->name.failed;
	json_str(j, "name", t->name.failed ? "" : (const char *)t->name.p);
	buf_reset(&t->name);
}

static void put_frame(struct tables *t, uint32_t id)
{
	const struct frame *f = resolve_frame(t->w->r, id);
	uint32_t mapping = CAPTURE_NONE;
	struct json j;

	if (!first(t->frames, id))
		return;
	if (f->map)
		mapping = put_mapping(t, f->map);
	j = begin_id(t, "frame", id);
	perf_text_frame_name(&t->name, f);
	put_name(t, &j);
	json_bool(&j, "kernel", f->kernel);
	json_bool(&j, "exact", f->exact);
	if (mapping != CAPTURE_NONE)
		json_u64(&j, "mapping", mapping);
	else
		json_null(&j, "mapping");
	perf_text_json_frame(&j, f);
	end(t, &j);
}

/* The number of the frame that replaces the missing ones of S, UINT32_MAX for none. */
static uint32_t put_lack(struct tables *t, const struct cap_stack *s)
{
	const size_t before = t->lacks.n;
	struct json j;
	uint32_t id;

	if (!perf_text_lack_name(&t->name, s)) {
		buf_reset(&t->name);
		return UINT32_MAX;
	}
	id = t->name.failed ? INTERN_NONE : intern_put(&t->lacks, t->name.p, t->name.len);
	if (id == INTERN_NONE) {
		t->failed = true;
		return UINT32_MAX;
	}
	id += (uint32_t)resolve_count(t->w->r);
	if (t->lacks.n == before) {
		buf_reset(&t->name);
		return id;
	}
	j = begin_id(t, "frame", id);
	put_name(t, &j);
	json_bool(&j, "kernel", s->kind == CAPTURE_STACK_KERNEL);
	end(t, &j);
	return id;
}

static bool is_shown(const struct tables *t, uint32_t frame)
{
	return t->w->scheduler || !resolve_frame(t->w->r, frame)->scheduler;
}

static void put_frames(struct tables *t, const struct stackids_span *s)
{
	const uint32_t *ids = stackids_at(t->w->stacks, s);

	for (uint32_t i = 0; i < s->len; i++) {
		if (is_shown(t, ids[i]))
			put_frame(t, ids[i]);
	}
}

static void put_numbers(struct tables *t, struct json *j, const struct stackids_span *s, uint32_t lack)
{
	const uint32_t *ids = stackids_at(t->w->stacks, s);

	for (uint32_t i = 0; i < s->len; i++) {
		if (is_shown(t, ids[i]))
			json_u64(j, NULL, ids[i]);
	}
	if (lack != UINT32_MAX)
		json_u64(j, NULL, lack);
}

/* A user stack of the capture may mean something else in another process, or at another time: its span says
 * so.
 */
static uint32_t put_stack(struct tables *t, uint32_t kstack, const struct stackids_span *kernel,
	uint32_t ustack, const struct stackids_span *user)
{
	const struct cap_stack *k = &t->w->c->stacks[kstack], *u = &t->w->c->stacks[ustack];
	uint32_t kernel_lack, user_lack, id;
	bool added = false;
	struct json j;

	id = idmap_put(&t->stacks, (uint64_t)kstack << 32 | ustack, user->len ? user->first : UINT64_MAX,
		(uint32_t)t->stacks.n, &added);
	t->failed = t->failed || id == UINT32_MAX;
	if (!added)
		return id;
	put_frames(t, kernel);
	kernel_lack = put_lack(t, k);
	put_frames(t, user);
	user_lack = put_lack(t, u);
	j = begin_id(t, "stack", id);
	json_begin(&j, "frames", '[');
	put_numbers(t, &j, kernel, kernel_lack);
	put_numbers(t, &j, user, user_lack);
	json_end(&j, ']');
	end(t, &j);
	return id;
}

static void put_waker(struct tables *t, uint32_t id)
{
	const struct cap_waker *w = &t->w->c->wakers[id - 1];
	const struct wait_printer_waker *r = &t->w->wakers[id - 1];
	const bool interrupt = w->flags & CAPTURE_WAKER_INTERRUPT;
	const uint32_t stack = put_stack(t, w->kstack, &r->kernel, w->ustack, &r->user);
	const uint32_t thread = w->proc != CAPTURE_NONE ? put_thread(t, w->proc, w->tid) : UINT32_MAX;
	struct json j = begin_id(t, "waker", id);

	json_bool(&j, "interrupt", interrupt);
	if (interrupt)
		json_str(&j, "kind", r->kind);
	if (thread != UINT32_MAX) {
		json_u64(&j, "thread", thread);
		put_earlier_name(t, &j, w->proc, w->tid, w->first_ns);
	}
	json_u64(&j, "stack", stack);
	if (w->next)
		json_u64(&j, "waker", w->next);
	end(t, &j);
}

/* Waker ID and those before it, whose ids are smaller: the last of them first. */
static void put_wakers(struct tables *t, uint32_t id)
{
	while (id && !t->wakers[id]) {
		uint32_t last = id;

		for (uint32_t next; (next = t->w->c->wakers[last - 1].next) != 0 && !t->wakers[next];)
			last = next;
		t->wakers[last] = true;
		put_waker(t, last);
	}
}

static void put_wait(struct json *j, const struct wait_printer_record *r, const struct cap_sample *s)
{
	char letters[16];

	json_u64(j, "max_ns", s->max_ns);
	if (s->is_split)
		json_u64(j, "runnable_ns", s->runnable_ns);
	json_str(j, "kind", r->kind);
	json_str(j, "state", capture_state_letter(s->state, letters));
	if (s->flags & CAPTURE_SAMPLE_OPEN)
		json_bool(j, "open", true);
	if (s->flags & CAPTURE_SAMPLE_INITIAL)
		json_bool(j, "initial", true);
	if (s->flags & CAPTURE_SAMPLE_PREEMPTED)
		json_bool(j, "preempted", true);
	if (s->waker)
		json_u64(j, "waker", s->waker);
}

/* S is the sample of R, or one wait of it. */
static void put_record(struct tables *t, const struct wait_printer_record *r, const struct cap_sample *s)
{
	const uint32_t thread = put_thread(t, s->proc, s->tid);
	const uint32_t stack = put_stack(t, s->kstack, &r->kernel, s->ustack, &r->user);
	const bool ran = s->flags & CAPTURE_SAMPLE_ON_CPU;
	struct json j;

	put_wakers(t, s->waker);
	j = begin(t, ran ? "sample" : "wait");
	json_u64(&j, "thread", thread);
	put_earlier_name(t, &j, s->proc, s->tid, s->first_ns);
	json_u64(&j, "stack", stack);
	json_u64(&j, "count", s->count);
	json_u64(&j, "total_ns", s->total_ns);
	json_u64(&j, "first_ns", s->first_ns);
	json_u64(&j, "last_ns", s->last_ns);
	if (!ran)
		put_wait(&j, r, s);
	end(t, &j);
}

static bool *flags(size_t n)
{
	return calloc(n + 1, sizeof(bool));
}

int tables_print(const struct wait_printer *w, struct out *out, struct err *e)
{
	const struct cap_reader *c = w->c;
	struct tables t = { .w = w,
		.out = out,
		.procs = flags(c->n_procs),
		.files = flags(c->n_files),
		.maps = flags(c->n_maps),
		.frames = flags(resolve_count(w->r)),
		.wakers = flags(c->n_wakers) };

	t.failed = !t.procs || !t.files || !t.maps || !t.frames || !t.wakers;
	for (size_t i = 0; i < w->n_records && !w->turns && !t.failed && !out->code; i++)
		put_record(&t, &w->records[i], w->records[i].sample);
	for (size_t i = 0; i < w->n_turns && !t.failed && !out->code; i++) {
		const struct cap_sample s = wait_printer_turn_sample(w, &w->turns[i]);

		/* the turns come in order of time: their records are all over the memory */
		if (i + AHEAD < w->n_turns)
			__builtin_prefetch(&w->records[w->turns[i + AHEAD].record]);
		put_record(&t, &w->records[w->turns[i].record], &s);
	}
	free(t.procs);
	free(t.files);
	free(t.maps);
	free(t.frames);
	free(t.wakers);
	idmap_free(&t.threads);
	idmap_free(&t.stacks);
	intern_free(&t.lacks);
	buf_free(&t.b);
	buf_free(&t.name);
	return t.failed ? err_nomem(e, "frames") : 0;
}
