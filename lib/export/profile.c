/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/profile.h"
#include "base/hash.h"
#include "base/jsonread.h"
#include "capture/format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

#define NO_STACK 1 /* the key of the frame that stands for an empty stack, besides those of the input, 0 */
#define READ_BYTES (1 << 20)
#define LINE_MAX_BYTES (64 << 20)

struct file {
	profile_text path, build_id;
};

/* A reader of lines, and the numbers that the input has for what is in the profile. */
struct reader {
	struct profile *p;
	const char *path;
	uint64_t line; /* the number of the current one */
	uint64_t stext; /* where the kernel begins; 0 = not known */
	bool head; /* the object "capture" has been read */
	struct file *files;
	size_t n_files, files_cap;
	size_t mappings_cap, processes_cap, threads_cap, calls_cap, frames_cap, stacks_cap, stacked_cap,
		wakers_cap, records_cap;
	struct idmap file_ids, mapping_ids, process_ids, thread_ids, frame_ids, stack_ids, waker_ids;
	struct idmap modules; /* (text, is kernel) -> mapping, for frames that have none */
	struct err *e;
};

static int nomem(struct reader *r)
{
	return err_nomem(r->e, "the recording");
}

static int malformed(struct reader *r, const char *why)
{
	return err_set(r->e, -EINVAL, "'%s' line %llu: %s", r->path, (unsigned long long)r->line, why);
}

static profile_text put_text(struct reader *r, struct jsonread *j, const struct jsonread_text *t)
{
	struct profile *p = r->p;
	uint32_t id;

	if (!t->len)
		return 0;
	if (!t->escaped) {
		id = intern_put(&p->texts, t->p, t->len);
	} else {
		buf_reset(&p->name);
		if (!jsonread_decode(t, &p->name)) {
			j->bad = j->bad ? j->bad : "an escape in a string is malformed";
			return 0;
		}
		if (p->name.len && memchr(p->name.p, '\0', p->name.len))
			j->bad = j->bad ? j->bad : "a string has a NUL";
		id = intern_put(&p->texts, p->name.p, p->name.len);
	}
	if (id == INTERN_NONE)
		j->bad = j->bad ? j->bad : "there is no memory for more names";
	return id == INTERN_NONE ? 0 : id;
}

static profile_text read_text(struct reader *r, struct jsonread *j)
{
	const struct jsonread_text t = jsonread_text(j);

	return put_text(r, j, &t);
}

static uint32_t read_u32(struct jsonread *j)
{
	const uint64_t v = jsonread_null(j) ? 0 : jsonread_u64(j);

	if (v > UINT32_MAX)
		j->bad = j->bad ? j->bad : "a number is too large";
	return (uint32_t)v;
}

/* A time or a count, which formats store with a sign. */
static uint64_t read_amount(struct jsonread *j)
{
	const uint64_t v = jsonread_u64(j);

	if (v > INT64_MAX)
		j->bad = j->bad ? j->bad : "a number is too large";
	return v;
}

/* What the input calls V in the table IDS; null refers to nothing. */
static uint32_t read_reference(struct jsonread *j, const struct idmap *ids, const char *missing)
{
	const struct idmap_slot *s;

	if (jsonread_null(j))
		return PROFILE_NONE;
	s = idmap_find(ids, 0, jsonread_u64(j));
	if (!s && !j->bad)
		j->bad = missing;
	return s && !j->bad ? s->value : PROFILE_NONE;
}

/* Index N of a table stands for the number ID of the input from now on. */
static int add_id(struct reader *r, struct idmap *ids, uint64_t id, size_t n)
{
	bool added = false;

	if (n >= PROFILE_NONE - 1 || idmap_put(ids, 0, id, (uint32_t)n, &added) == UINT32_MAX)
		return nomem(r);
	return added ? 0 : malformed(r, "it has the number of an earlier object of its type");
}

/* Add *ITEM to the table NAME of the profile; IDS gets its number in the input. */
#define ADD(r, name, ids, id, item)                                                                          \
	({                                                                                                   \
		int add_rc = base_grow(                                                                      \
			&(r)->p->name, &(r)->name##_cap, (r)->p->n_##name + 1, sizeof(*(r)->p->name));       \
		add_rc = add_rc ? nomem(r) : add_id(r, ids, id, (r)->p->n_##name);                           \
		if (!add_rc)                                                                                 \
			(r)->p->name[(r)->p->n_##name++] = *(item);                                          \
		add_rc;                                                                                      \
	})

static const char no_file[] = "it refers to a file that no line before it has";
static const char no_mapping[] = "it refers to a mapping that no line before it has";
static const char no_process[] = "it refers to a process that no line before it has";
static const char no_thread[] = "it refers to a thread that no line before it has";
static const char no_frame[] = "it refers to a frame that no line before it has";
static const char no_stack[] = "it refers to a stack that no line before it has";
static const char no_waker[] = "it refers to a waker that no line before it has";

static void read_lost(struct reader *r, struct jsonread *j)
{
	struct jsonread_text key;

	jsonread_begin(j, '{');
	while (jsonread_member(j, &key))
		r->p->lost = add_saturating(r->p->lost, jsonread_u64(j));
}

static int read_capture(struct reader *r, struct jsonread *j)
{
	struct profile *p = r->p;
	struct jsonread_text key;

	if (r->head)
		return malformed(r, "there is a second object of type capture: give one recording at a time");
	r->head = true;
	while (jsonread_member(j, &key)) {
		if (jsonread_is(&key, "hostname"))
			p->hostname = read_text(r, j);
		else if (jsonread_is(&key, "release"))
			p->release = read_text(r, j);
		else if (jsonread_is(&key, "machine"))
			p->machine = read_text(r, j);
		else if (jsonread_is(&key, "recorder"))
			p->recorder = read_text(r, j);
		else if (jsonread_is(&key, "boot_id"))
			p->boot_id = read_text(r, j);
		else if (jsonread_is(&key, "kernel_build_id"))
			p->kernel_build_id = read_text(r, j);
		else if (jsonread_is(&key, "stext"))
			r->stext = jsonread_null(j) ? 0 : jsonread_address(j);
		else if (jsonread_is(&key, "start_real_ns"))
			p->start_real_ns = read_amount(j);
		else if (jsonread_is(&key, "start_mono_ns"))
			p->start_mono_ns = read_amount(j);
		else if (jsonread_is(&key, "duration_ns"))
			p->duration_ns = read_amount(j);
		else if (jsonread_is(&key, "damage"))
			p->damage = read_text(r, j);
		else if (jsonread_is(&key, "lost"))
			read_lost(r, j);
		else
			jsonread_skip(j);
	}
	return 0;
}

static int read_file(struct reader *r, struct jsonread *j)
{
	struct file f = { 0 };
	struct jsonread_text key;
	uint64_t id = UINT64_MAX;

	while (jsonread_member(j, &key)) {
		if (jsonread_is(&key, "id"))
			id = jsonread_u64(j);
		else if (jsonread_is(&key, "path"))
			f.path = read_text(r, j);
		else if (jsonread_is(&key, "build_id"))
			f.build_id = read_text(r, j);
		else
			jsonread_skip(j);
	}
	if (base_grow(&r->files, &r->files_cap, r->n_files + 1, sizeof(f)) != 0)
		return nomem(r);
	r->files[r->n_files] = f;
	return add_id(r, &r->file_ids, id, r->n_files++);
}

static int read_mapping(struct reader *r, struct jsonread *j)
{
	struct profile_mapping m = { .file = PROFILE_NONE };
	struct jsonread_text key;
	uint64_t id = UINT64_MAX;

	while (jsonread_member(j, &key)) {
		if (jsonread_is(&key, "id"))
			id = jsonread_u64(j);
		else if (jsonread_is(&key, "file"))
			m.file = read_reference(j, &r->file_ids, no_file);
		else if (jsonread_is(&key, "start"))
			m.start = jsonread_address(j);
		else if (jsonread_is(&key, "end"))
			m.end = jsonread_address(j);
		else if (jsonread_is(&key, "offset"))
			m.offset = jsonread_address(j);
		else
			jsonread_skip(j);
	}
	if (m.file != PROFILE_NONE) {
		m.name = r->files[m.file].path;
		m.build_id = r->files[m.file].build_id;
	}
	return ADD(r, mappings, &r->mapping_ids, id, &m);
}

static int read_process(struct reader *r, struct jsonread *j)
{
	struct profile_process p = { 0 };
	struct jsonread_text key;
	uint64_t id = UINT64_MAX;

	while (jsonread_member(j, &key)) {
		if (jsonread_is(&key, "id"))
			id = jsonread_u64(j);
		else if (jsonread_is(&key, "pid"))
			p.pid = read_u32(j);
		else if (jsonread_is(&key, "ns_pid"))
			p.ns_pid = read_u32(j);
		else if (jsonread_is(&key, "comm"))
			p.comm = read_text(r, j);
		else if (jsonread_is(&key, "exe"))
			p.exe = read_text(r, j);
		else if (jsonread_is(&key, "kthread"))
			p.kthread = jsonread_bool(j);
		else
			jsonread_skip(j);
	}
	return ADD(r, processes, &r->process_ids, id, &p);
}

static int read_thread(struct reader *r, struct jsonread *j)
{
	struct profile_thread t = { .process = PROFILE_NONE };
	struct jsonread_text key;
	uint64_t id = UINT64_MAX;

	while (jsonread_member(j, &key)) {
		if (jsonread_is(&key, "id"))
			id = jsonread_u64(j);
		else if (jsonread_is(&key, "process"))
			t.process = read_reference(j, &r->process_ids, no_process);
		else if (jsonread_is(&key, "tid"))
			t.tid = read_u32(j);
		else if (jsonread_is(&key, "ns_tid"))
			t.ns_tid = read_u32(j);
		else if (jsonread_is(&key, "comm"))
			t.comm = read_text(r, j);
		else
			jsonread_skip(j);
	}
	if (t.process == PROFILE_NONE)
		j->bad = j->bad ? j->bad : no_process;
	return ADD(r, threads, &r->thread_ids, id, &t);
}

/* The member KEY of a call, if it is one. */
static bool read_call_member(
	struct reader *r, struct jsonread *j, const struct jsonread_text *key, struct profile_call *c)
{
	if (jsonread_is(key, "linkage_name"))
		c->linkage = read_text(r, j);
	else if (jsonread_is(key, "file"))
		c->file = read_text(r, j);
	else if (jsonread_is(key, "line"))
		c->line = read_u32(j);
	else if (jsonread_is(key, "column"))
		c->column = read_u32(j);
	else
		return false;
	return true;
}

static int add_call(struct reader *r, const struct profile_call *c)
{
	struct profile *p = r->p;

	if (p->n_calls >= PROFILE_NONE - 1 ||
		base_grow(&p->calls, &r->calls_cap, p->n_calls + 1, sizeof(*c)) != 0)
		return nomem(r);
	p->calls[p->n_calls++] = *c;
	return 0;
}

static int read_inlined(struct reader *r, struct jsonread *j)
{
	struct jsonread_text key;
	int rc = 0;

	jsonread_begin(j, '[');
	while (!rc && jsonread_element(j)) {
		struct profile_call c = { 0 };

		jsonread_begin(j, '{');
		while (jsonread_member(j, &key)) {
			if (jsonread_is(&key, "symbol"))
				c.name = read_text(r, j);
			else if (!read_call_member(r, j, &key, &c))
				jsonread_skip(j);
		}
		if (!c.name)
			c.name = intern_put(&r->p->texts, "[unknown]", 9);
		rc = c.name == INTERN_NONE ? nomem(r) : add_call(r, &c);
	}
	return rc;
}

/* A frame without a mapping lies in one that only has the MODULE's name. */
static uint32_t module_mapping(struct reader *r, profile_text module, bool kernel)
{
	struct profile *p = r->p;
	struct profile_mapping m = { .file = PROFILE_NONE, .name = module, .kernel = kernel };
	bool added = false;
	uint32_t at;

	if (base_grow(&p->mappings, &r->mappings_cap, p->n_mappings + 1, sizeof(m)) != 0)
		return PROFILE_NONE;
	at = idmap_put(&r->modules, kernel, module, (uint32_t)p->n_mappings, &added);
	if (added)
		p->mappings[p->n_mappings++] = m;
	return at;
}

/* "[kernel.kallsyms]", "[ext4]", "[python]": as text has it; 0 = not known. */
static profile_text module_name(struct reader *r, const struct profile_frame *f,
	const struct jsonread_text *module, const struct jsonread_text *runtime, struct jsonread *j)
{
	const struct jsonread_text *name = runtime->len ? runtime : module;
	struct buf *b = &r->p->name;
	uint32_t id;

	if (f->kernel && (!name->len || jsonread_is(name, "kernel")))
		id = intern_put(&r->p->texts, "[kernel.kallsyms]", 17);
	else if (!f->kernel && !runtime->len)
		return put_text(r, j, name);
	else {
		buf_reset(b);
		buf_put(b, "[", 1);
		if (!jsonread_decode(name, b))
			j->bad = j->bad ? j->bad : "an escape in a string is malformed";
		buf_put(b, "]", 1);
		id = b->failed ? INTERN_NONE : intern_put(&r->p->texts, b->p, b->len);
	}
	if (id == INTERN_NONE)
		j->bad = j->bad ? j->bad : "there is no memory for more names";
	return id == INTERN_NONE ? 0 : id;
}

static int add_frame(struct reader *r, struct jsonread *j, uint64_t id, struct profile_frame *f,
	const struct profile_call *own, profile_text module)
{
	struct profile *p = r->p;
	int rc = add_call(r, own);

	f->n = (uint32_t)(p->n_calls - f->first);
	if (!own->name)
		j->bad = j->bad ? j->bad : "a frame has no name";
	if (!rc && f->mapping == PROFILE_NONE && module) {
		f->mapping = module_mapping(r, module, f->kernel);
		rc = f->mapping == PROFILE_NONE ? nomem(r) : 0;
	}
	rc = rc ? rc : ADD(r, frames, &r->frame_ids, id, f);
	if (rc || f->mapping == PROFILE_NONE)
		return rc;
	for (uint32_t i = 0; i < f->n; i++)
		p->mappings[f->mapping].has_lines |= p->calls[f->first + i].line != 0;
	p->mappings[f->mapping].has_inlined |= f->n > 1;
	return 0;
}

static int read_frame(struct reader *r, struct jsonread *j)
{
	struct profile_frame f = { .mapping = PROFILE_NONE, .first = (uint32_t)r->p->n_calls };
	struct jsonread_text key, module = { 0 }, runtime = { 0 };
	struct profile_call own = { 0 };
	uint64_t id = UINT64_MAX;
	int rc = 0;

	while (!rc && jsonread_member(j, &key)) {
		if (jsonread_is(&key, "id"))
			id = jsonread_u64(j);
		else if (jsonread_is(&key, "name"))
			own.name = read_text(r, j);
		else if (jsonread_is(&key, "address"))
			f.address = jsonread_address(j);
		else if (jsonread_is(&key, "mapping"))
			f.mapping = read_reference(j, &r->mapping_ids, no_mapping);
		else if (jsonread_is(&key, "kernel"))
			f.kernel = jsonread_bool(j);
		else if (jsonread_is(&key, "exact"))
			f.exact = jsonread_bool(j);
		else if (jsonread_is(&key, "module"))
			module = jsonread_text(j);
		else if (jsonread_is(&key, "runtime"))
			runtime = jsonread_text(j);
		else if (jsonread_is(&key, "module_address")) {
			f.in_module = !jsonread_null(j);
			f.module_address = f.in_module ? jsonread_address(j) : 0;
		} else if (jsonread_is(&key, "inlined"))
			rc = read_inlined(r, j);
		else if (!read_call_member(r, j, &key, &own))
			jsonread_skip(j);
	}
	if (rc)
		return rc;
	return add_frame(r, j, id, &f, &own, module_name(r, &f, &module, &runtime, j));
}

/* Viewers drop a record without frames. */
static int put_no_stack(struct reader *r)
{
	struct profile *p = r->p;
	struct profile_frame f = { .mapping = PROFILE_NONE, .first = (uint32_t)p->n_calls, .n = 1 };
	const struct profile_call call = { .name = profile_put(p, "[no stack]") };
	bool added = false;
	const uint32_t at = idmap_put(&r->frame_ids, NO_STACK, 0, (uint32_t)p->n_frames, &added);

	if (call.name == INTERN_NONE || at == UINT32_MAX ||
		base_grow(&p->stacked, &r->stacked_cap, p->n_stacked + 1, sizeof(at)) != 0)
		return -ENOMEM;
	p->stacked[p->n_stacked++] = at;
	if (!added)
		return 0;
	if (base_grow(&p->frames, &r->frames_cap, p->n_frames + 1, sizeof(f)) != 0)
		return -ENOMEM;
	p->frames[p->n_frames++] = f;
	return add_call(r, &call);
}

static int read_stack(struct reader *r, struct jsonread *j)
{
	struct profile *p = r->p;
	struct profile_stack s = { .first = p->n_stacked };
	struct jsonread_text key;
	uint64_t id = UINT64_MAX;

	while (jsonread_member(j, &key)) {
		if (jsonread_is(&key, "id")) {
			id = jsonread_u64(j);
			continue;
		}
		if (!jsonread_is(&key, "frames")) {
			jsonread_skip(j);
			continue;
		}
		jsonread_begin(j, '[');
		while (jsonread_element(j)) {
			const uint32_t frame = read_reference(j, &r->frame_ids, no_frame);

			if (base_grow(&p->stacked, &r->stacked_cap, p->n_stacked + 1, sizeof(frame)) != 0)
				return nomem(r);
			if (frame == PROFILE_NONE)
				j->bad = j->bad ? j->bad : no_frame;
			else
				p->stacked[p->n_stacked++] = frame;
		}
	}
	if (p->n_stacked - s.first > UINT32_MAX || (p->n_stacked == s.first && put_no_stack(r) != 0))
		return nomem(r);
	s.n = (uint32_t)(p->n_stacked - s.first);
	return ADD(r, stacks, &r->stack_ids, id, &s);
}

/* What WAKER is called: the thread's name at that time, or what kind of interrupt it is. */
static profile_text waker_name(
	struct reader *r, const struct profile_waker *w, profile_text comm, bool interrupt, profile_text kind)
{
	struct profile *p = r->p;
	struct buf *b = &p->name;
	const char *text;
	size_t len;

	if (w->thread != PROFILE_NONE)
		return comm ? comm : p->threads[w->thread].comm;
	text = profile_str(p, kind, &len);
	buf_reset(b);
	buf_put(b, "[", 1);
	if (interrupt && len)
		buf_put(b, text, len);
	else
		buf_put(b, interrupt ? "interrupt" : "hidden", interrupt ? 9 : 6);
	buf_put(b, "]", 1);
	return b->failed ? INTERN_NONE : intern_put(&p->texts, b->p, b->len);
}

static int read_waker(struct reader *r, struct jsonread *j)
{
	struct profile_waker w = { .thread = PROFILE_NONE, .stack = PROFILE_NONE, .next = PROFILE_NONE };
	struct jsonread_text key;
	uint64_t id = UINT64_MAX;
	profile_text kind = 0, comm = 0;
	bool interrupt = false;

	while (jsonread_member(j, &key)) {
		if (jsonread_is(&key, "id"))
			id = jsonread_u64(j);
		else if (jsonread_is(&key, "thread"))
			w.thread = read_reference(j, &r->thread_ids, no_thread);
		else if (jsonread_is(&key, "comm"))
			comm = read_text(r, j);
		else if (jsonread_is(&key, "stack"))
			w.stack = read_reference(j, &r->stack_ids, no_stack);
		else if (jsonread_is(&key, "waker"))
			w.next = read_reference(j, &r->waker_ids, no_waker);
		else if (jsonread_is(&key, "interrupt"))
			interrupt = jsonread_bool(j);
		else if (jsonread_is(&key, "kind"))
			kind = read_text(r, j);
		else
			jsonread_skip(j);
	}
	if (w.stack == PROFILE_NONE)
		j->bad = j->bad ? j->bad : no_stack;
	w.name = waker_name(r, &w, comm, interrupt, kind);
	return w.name == INTERN_NONE ? nomem(r) : ADD(r, wakers, &r->waker_ids, id, &w);
}

static int add_record(struct reader *r, struct jsonread *j, struct profile_record *w)
{
	struct profile *p = r->p;

	if (w->thread == PROFILE_NONE)
		j->bad = j->bad ? j->bad : no_thread;
	else if (w->stack == PROFILE_NONE)
		j->bad = j->bad ? j->bad : no_stack;
	else if (!w->count)
		j->bad = j->bad ? j->bad : "a record has no count";
	else if (w->runnable_ns > w->total_ns)
		j->bad = j->bad ? j->bad : "runnable_ns is more than total_ns";
	if (j->bad)
		return 0;
	w->comm = w->comm ? w->comm : p->threads[w->thread].comm;
	if (base_grow(&p->records, &r->records_cap, p->n_records + 1, sizeof(*w)) != 0)
		return nomem(r);
	p->records[p->n_records++] = *w;
	p->has_samples |= w->is_sample;
	p->has_waits |= !w->is_sample;
	p->has_split |= w->is_split;
	*(w->is_sample ? &p->samples : &p->waits) += w->count;
	return 0;
}

static int read_record(struct reader *r, struct jsonread *j, bool is_sample)
{
	struct profile_record w = {
		.thread = PROFILE_NONE, .stack = PROFILE_NONE, .waker = PROFILE_NONE, .is_sample = is_sample
	};
	struct jsonread_text key;
	bool with_frames = false;

	while (jsonread_member(j, &key)) {
		if (jsonread_is(&key, "thread"))
			w.thread = read_reference(j, &r->thread_ids, no_thread);
		else if (jsonread_is(&key, "comm"))
			w.comm = read_text(r, j);
		else if (jsonread_is(&key, "stack"))
			w.stack = read_reference(j, &r->stack_ids, no_stack);
		else if (jsonread_is(&key, "waker"))
			w.waker = read_reference(j, &r->waker_ids, no_waker);
		else if (jsonread_is(&key, "count"))
			w.count = read_amount(j);
		else if (jsonread_is(&key, "total_ns"))
			w.total_ns = read_amount(j);
		else if (jsonread_is(&key, "max_ns"))
			w.max_ns = read_amount(j);
		else if (jsonread_is(&key, "first_ns"))
			w.first_ns = read_amount(j);
		else if (jsonread_is(&key, "last_ns"))
			w.last_ns = read_amount(j);
		else if (jsonread_is(&key, "kind"))
			w.kind = read_text(r, j);
		else if (jsonread_is(&key, "state"))
			w.state = read_text(r, j);
		else if (jsonread_is(&key, "open"))
			w.open = jsonread_bool(j);
		else if (jsonread_is(&key, "initial"))
			w.initial = jsonread_bool(j);
		else if (jsonread_is(&key, "preempted"))
			w.preempted = jsonread_bool(j);
		else if (jsonread_is(&key, "runnable_ns")) {
			w.is_split = !jsonread_null(j);
			w.runnable_ns = w.is_split ? read_amount(j) : 0;
		} else {
			with_frames |= jsonread_is(&key, "kernel_stack");
			jsonread_skip(j);
		}
	}
	if (with_frames && !j->bad) {
		malformed(r, "it is JSON of symbolize, but not of --format=tables");
		err_hint(r->e, "symbolize --format=tables CAPTURE | stackexport --format=...");
		return -EINVAL;
	}
	return add_record(r, j, &w);
}

static int read_object(struct reader *r, struct jsonread *j, const struct jsonread_text *type)
{
	static int (*const readers[])(struct reader *, struct jsonread *) = { read_capture, read_file,
		read_mapping, read_process, read_thread, read_frame, read_stack, read_waker };
	static const char *const types[] = { "capture", "file", "mapping", "process", "thread", "frame",
		"stack", "waker" };
	struct jsonread_text key;

	if (jsonread_is(type, "wait") || jsonread_is(type, "sample"))
		return r->head ? read_record(r, j, jsonread_is(type, "sample"))
			       : malformed(r, "no object of type capture comes before it");
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (jsonread_is(type, types[i]))
			return r->head || i == 0 ? readers[i](r, j)
						 : malformed(r, "no object of type capture comes before it");
	}
	while (jsonread_member(j, &key))
		jsonread_skip(j);
	return 0;
}

/* The member "type" is the first one. */
static int read_line(struct reader *r, const char *line, size_t len)
{
	struct jsonread j = jsonread_init(line, len);
	struct jsonread_text key, type = { 0 };
	int rc = 0;

	r->line++;
	jsonread_begin(&j, '{');
	if (jsonread_member(&j, &key) && jsonread_is(&key, "type"))
		type = jsonread_text(&j);
	if (!type.p) {
		malformed(r, j.bad ? j.bad : "it is an object without a type");
		if (!r->head)
			err_hint(r->e,
				"stackexport reads captures, and what symbolize --format=tables prints");
		return -EINVAL;
	}
	rc = read_object(r, &j, &type);
	if (!rc)
		jsonread_end(&j);
	return rc || !j.bad ? rc : malformed(r, j.bad);
}

/* A capture in a pipe: no one has read its first bytes, by which a file is recognised. */
static int refuse_capture(struct reader *r)
{
	err_set(r->e, -EINVAL, "'%s' is a capture in a pipe, which symbolize has to read", r->path);
	err_hint(r->e, "give the name of the file, or: symbolize --format=tables | stackexport --format=...");
	return -EINVAL;
}

/* Takes the complete lines from *B; the rest moves to its beginning. */
static int read_lines(struct reader *r, struct buf *b)
{
	const char *p = (const char *)b->p, *end = p + b->len, *newline;
	int rc = 0;

	while (!rc && (newline = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		rc = read_line(r, p, (size_t)(newline - p));
		p = newline + 1;
	}
	b->len = (size_t)(end - p);
	memmove(b->p, p, b->len);
	return rc;
}

static int read_all(struct reader *r, int fd, struct buf *b)
{
	int rc = 0;

	while (!rc) {
		uint8_t *room;
		ssize_t n;

		if (b->len > LINE_MAX_BYTES) {
			r->line++;
			return malformed(r, "it is longer than 64 MiB");
		}
		if (b->cap - b->len < READ_BYTES) {
			room = realloc(b->p, b->cap + 2 * READ_BYTES);
			if (!room)
				return nomem(r);
			b->p = room;
			b->cap += 2 * READ_BYTES;
		}
		n = read(fd, b->p + b->len, READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			rc = -errno;
			return err_sys(r->e, rc, "cannot read '%s'", r->path);
		}
		if (n == 0)
			break;
		b->len += (size_t)n;
		if (!r->line && b->len >= CAPTURE_BLOCK_MAGIC_LEN &&
			memcmp(b->p, CAPTURE_BLOCK_MAGIC, CAPTURE_BLOCK_MAGIC_LEN) == 0)
			return refuse_capture(r);
		rc = read_lines(r, b);
	}
	if (!rc && b->len) {
		r->line++;
		return malformed(r, "it breaks off: the input is incomplete");
	}
	return rc;
}

static void reader_free(struct reader *r)
{
	free(r->files);
	idmap_free(&r->file_ids);
	idmap_free(&r->mapping_ids);
	idmap_free(&r->process_ids);
	idmap_free(&r->thread_ids);
	idmap_free(&r->frame_ids);
	idmap_free(&r->stack_ids);
	idmap_free(&r->waker_ids);
	idmap_free(&r->modules);
}

#define PAGE 4096

/*
 * The mappings that stand for the kernel and its modules: the pages that their frames are in; the kernel's
 * also those before, from its beginning on, and its build ID.
 */
static void set_kernel(const struct reader *r)
{
	struct profile *p = r->p;

	for (size_t i = 0; i < p->n_frames; i++) {
		const struct profile_frame *f = &p->frames[i];
		struct profile_mapping *m = f->mapping != PROFILE_NONE ? &p->mappings[f->mapping] : NULL;
		const uint64_t page = profile_call_address(f) & ~(uint64_t)(PAGE - 1);

		if (!m || !m->kernel || !f->address)
			continue;
		m->start = m->end ? MIN(m->start, page) : page;
		m->end = MAX(m->end, add_saturating(page, PAGE));
	}
	for (size_t i = 0; i < p->n_mappings; i++) {
		struct profile_mapping *m = &p->mappings[i];
		size_t len;
		const char *name = profile_str(p, m->name, &len);

		if (!m->kernel || len != 17 || memcmp(name, "[kernel.kallsyms]", len) != 0)
			continue;
		m->build_id = p->kernel_build_id;
		if (r->stext && r->stext < m->start)
			m->start = r->stext;
	}
}

int profile_read(struct profile *p, int fd, const char *path, struct err *e)
{
	CLEANUP(reader_free) struct reader r = { .p = p, .path = path, .e = e };
	struct buf b = { 0 };
	uint64_t seed = 0;
	int rc;

	/* unpredictable if the kernel has random bytes; the result is the same with a fixed seed */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = HASH_K3;
	p->texts.seed = seed;
	if (intern_put(&p->texts, "", 0) != 0)
		return nomem(&r);
	rc = read_all(&r, fd, &b);
	buf_free(&b);
	if (!rc && !r.head) {
		err_set(e, -EINVAL, "'%s' is empty", path);
		err_hint(e, "the programs whose output it is may have printed why");
		rc = -EINVAL;
	}
	set_kernel(&r);
	return rc;
}

static int by_time(const void *a, const void *b, void *records)
{
	const struct profile_record *all = records;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = CMP(all[x].last_ns, all[y].last_ns);

	return c ? c : CMP(x, y);
}

int profile_group(const struct profile *p, const uint32_t *group_of, size_t n, struct profile_groups *ret)
{
	ret->n = n;
	ret->order = calloc(p->n_records + 1, sizeof(*ret->order));
	ret->first = calloc(n + 2, sizeof(*ret->first));
	if (!ret->order || !ret->first || p->n_records > UINT32_MAX)
		return -ENOMEM;
	/* while they are counted, and then placed, group G is at G + 2 and at G + 1 */
	for (size_t i = 0; i < p->n_records; i++)
		ret->first[group_of[i] + 2]++;
	for (size_t g = 2; g < n + 2; g++)
		ret->first[g] += ret->first[g - 1];
	for (size_t i = 0; i < p->n_records; i++)
		ret->order[ret->first[group_of[i] + 1]++] = (uint32_t)i;
	return 0;
}

static void sort_by_time(const struct profile *p, uint32_t *order, size_t n)
{
	bool sorted = true;

	for (size_t i = 1; i < n && sorted; i++)
		sorted = p->records[order[i - 1]].last_ns <= p->records[order[i]].last_ns;
	if (!sorted)
		qsort_r(order, n, sizeof(*order), by_time, p->records);
}

int profile_by_thread(const struct profile *p, struct profile_groups *ret)
{
	_cleanup_free_ uint32_t *group_of = calloc(p->n_records + 1, sizeof(*group_of));
	int rc;

	if (!group_of || p->n_threads > UINT32_MAX / 2 - 2)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_records; i++)
		group_of[i] = 2 * p->records[i].thread + p->records[i].is_sample;
	rc = profile_group(p, group_of, 2 * p->n_threads, ret);
	for (size_t g = 0; !rc && g < ret->n; g++)
		sort_by_time(p, ret->order + ret->first[g], ret->first[g + 1] - ret->first[g]);
	return rc;
}

/* A number for each pair that comes. */
static uint32_t number_of(struct idmap *m, uint32_t a, uint32_t b)
{
	return idmap_put(m, a, b, (uint32_t)m->n, NULL);
}

int profile_by_identity(const struct profile *p, struct profile_groups *ret)
{
	_cleanup_free_ uint32_t *group_of = calloc(p->n_records + 1, sizeof(*group_of));
	struct idmap maps[6] = { 0 }; /* each numbers pairs of a number of the one before and one more part */
	bool failed = !group_of;
	int rc;

	for (size_t i = 0; i < p->n_records && !failed; i++) {
		const struct profile_record *r = &p->records[i];
		const uint32_t flags =
			(uint32_t)(r->is_sample | r->open << 1 | r->initial << 2 | r->preempted << 3);
		const uint32_t waker = r->waker != PROFILE_NONE ? p->wakers[r->waker].name : PROFILE_NONE;
		uint32_t id = number_of(&maps[0], flags, r->state);

		id = number_of(&maps[1], id, r->kind);
		id = number_of(&maps[2], id, waker);
		id = number_of(&maps[3], id, r->thread);
		id = number_of(&maps[4], id, r->comm);
		group_of[i] = number_of(&maps[5], id, r->stack);
		failed = group_of[i] == UINT32_MAX;
	}
	rc = failed ? -ENOMEM : profile_group(p, group_of, maps[5].n, ret);
	for (size_t i = 0; i < ARRAY_LEN(maps); i++)
		idmap_free(&maps[i]);
	return rc;
}

void profile_groups_free(struct profile_groups *g)
{
	free(g->order);
	free(g->first);
}

const char *profile_cstr(const struct profile *p, profile_text text, struct buf *scratch)
{
	size_t len;
	const char *s = profile_str(p, text, &len);

	buf_reset(scratch);
	buf_put(scratch, s, len);
	buf_put(scratch, "", 1);
	return scratch->failed ? "" : (const char *)scratch->p;
}

profile_text profile_put(struct profile *p, const char *s)
{
	return intern_put(&p->texts, s, strlen(s));
}

void profile_free(struct profile *p)
{
	intern_free(&p->texts);
	buf_free(&p->name);
	free(p->mappings);
	free(p->processes);
	free(p->threads);
	free(p->calls);
	free(p->frames);
	free(p->stacks);
	free(p->stacked);
	free(p->wakers);
	free(p->records);
	memset(p, 0, sizeof(*p));
}
