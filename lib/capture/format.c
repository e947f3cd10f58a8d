/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/format.h"
#include "base/hash.h"
#include "base/search.h"

#include <errno.h>
#include <string.h>

const char *cap_record_type_name(unsigned int type)
{
	static const char *const names[CAPTURE_RECORD_TYPES] = { "unknown", "host", "options", "files",
		"processes", "threads", "maps", "images", "kernel symbols", "stacks", "samples", "counters",
		"flush", "trailer", "JIT code", "names", "strings", "script frames", "wakers", "keys",
		"waits", "changes of counters", "lives of threads" };

	return type < CAPTURE_RECORD_TYPES ? names[type] : names[0];
}

/* --- fields --- */

/* The NUL after the bytes lets a reader use the string in place. */
static void put_str(struct buf *b, const char *s)
{
	buf_str(b, s);
	buf_put(b, "", 1);
}

static void put_build_id(struct buf *b, const struct cap_build_id *id)
{
	size_t len = MIN(id->len, CAPTURE_BUILD_ID_MAX);

	buf_uleb(b, len);
	buf_put(b, id->bytes, len);
}

/* Like rd_uleb(), with a fast path for the common one-byte numbers. */
static inline uint64_t get_uleb(struct rd *r)
{
	if (r->p < r->end && r->p[0] < 0x80)
		return r->bad ? 0 : *r->p++;
	return rd_uleb(r);
}

static inline uint32_t get_u32(struct rd *r)
{
	uint64_t v = get_uleb(r);

	if (v > UINT32_MAX)
		r->bad = true;
	return (uint32_t)v;
}

static uint8_t get_u8(struct rd *r)
{
	uint64_t v = get_uleb(r);

	if (v > UINT8_MAX)
		r->bad = true;
	return (uint8_t)v;
}

static int32_t get_s32(struct rd *r)
{
	int64_t v = rd_sleb(r);

	if (v > INT32_MAX || v < INT32_MIN)
		r->bad = true;
	return (int32_t)v;
}

static const char *get_str(struct rd *r)
{
	uint64_t len = get_uleb(r);
	const char *s = len < rd_left(r) ? rd_bytes(r, (size_t)len + 1) : NULL;

	if (!s || strnlen(s, (size_t)len + 1) != len) {
		r->bad = true;
		return "";
	}
	return s;
}

static void get_build_id(struct rd *r, struct cap_build_id *id)
{
	uint64_t len = get_uleb(r);
	const void *bytes = len <= CAPTURE_BUILD_ID_MAX ? rd_bytes(r, (size_t)len) : NULL;

	*id = (struct cap_build_id){ 0 };
	if (!bytes) {
		r->bad = true;
		return;
	}
	id->len = (uint8_t)len;
	memcpy(id->bytes, bytes, (size_t)len);
}

/* --- records --- */

bool cap_record_next(struct rd *r, struct rd *record)
{
	uint64_t len;
	const void *bytes;

	if (r->bad || !rd_left(r))
		return false;
	len = get_uleb(r);
	bytes = len <= rd_left(r) ? rd_bytes(r, (size_t)len) : NULL;
	if (!bytes) {
		r->bad = true;
		return false;
	}
	*record = rd_init(bytes, (size_t)len);
	return true;
}

void cap_record_put_host(struct buf *b, const struct cap_host *h)
{
	put_str(b, h->sysname);
	put_str(b, h->release);
	put_str(b, h->version);
	put_str(b, h->machine);
	put_str(b, h->hostname);
	put_str(b, h->boot_id);
	put_str(b, h->recorder);
	put_build_id(b, &h->kernel_build_id);
	buf_uleb(b, h->stext);
	buf_uleb(b, h->start_mono_ns);
	buf_uleb(b, h->start_boot_ns);
	buf_uleb(b, h->start_real_ns);
	buf_uleb(b, h->max_stack);
	buf_uleb(b, h->cpus);
	buf_uleb(b, h->page_size);
}

bool cap_record_get_host(struct rd *r, struct cap_host *h)
{
	h->sysname = get_str(r);
	h->release = get_str(r);
	h->version = get_str(r);
	h->machine = get_str(r);
	h->hostname = get_str(r);
	h->boot_id = get_str(r);
	h->recorder = get_str(r);
	get_build_id(r, &h->kernel_build_id);
	h->stext = get_uleb(r);
	h->start_mono_ns = get_uleb(r);
	h->start_boot_ns = get_uleb(r);
	h->start_real_ns = get_uleb(r);
	h->max_stack = get_u32(r);
	h->cpus = get_u32(r);
	h->page_size = get_u32(r);
	return !r->bad;
}

void cap_record_put_option(struct buf *b, const struct cap_option *o)
{
	put_str(b, o->name);
	put_str(b, o->value);
}

bool cap_record_get_option(struct rd *r, struct cap_option *o)
{
	o->name = get_str(r);
	o->value = get_str(r);
	return !r->bad;
}

void cap_record_put_file(struct buf *b, const struct cap_file *f)
{
	buf_uleb(b, f->id);
	buf_uleb(b, f->dev_major);
	buf_uleb(b, f->dev_minor);
	buf_uleb(b, f->flags);
	buf_sleb(b, f->error);
	buf_uleb(b, f->inode);
	buf_uleb(b, f->size);
	buf_uleb(b, f->mtime_ns);
	put_build_id(b, &f->build_id);
	put_str(b, f->path);
}

bool cap_record_get_file(struct rd *r, struct cap_file *f)
{
	f->id = get_u32(r);
	f->dev_major = get_u32(r);
	f->dev_minor = get_u32(r);
	f->flags = get_u32(r);
	f->error = get_s32(r);
	f->inode = get_uleb(r);
	f->size = get_uleb(r);
	f->mtime_ns = get_uleb(r);
	get_build_id(r, &f->build_id);
	f->path = get_str(r);
	return !r->bad;
}

void cap_record_put_proc(struct buf *b, const struct cap_proc *p)
{
	buf_uleb(b, p->id);
	buf_uleb(b, p->tgid);
	buf_uleb(b, p->ns_tgid);
	buf_uleb(b, p->flags);
	buf_sleb(b, p->maps_error);
	buf_uleb(b, p->start_boot_ns);
	buf_uleb(b, p->image_ns);
	put_str(b, p->comm);
	put_str(b, p->exe);
}

bool cap_record_get_proc(struct rd *r, struct cap_proc *p)
{
	p->id = get_u32(r);
	p->tgid = get_u32(r);
	p->ns_tgid = get_u32(r);
	p->flags = get_u32(r);
	p->maps_error = get_s32(r);
	p->start_boot_ns = get_uleb(r);
	p->image_ns = get_uleb(r);
	p->comm = get_str(r);
	p->exe = get_str(r);
	return !r->bad;
}

void cap_record_put_thread(struct buf *b, const struct cap_thread *t)
{
	buf_uleb(b, t->proc);
	buf_uleb(b, t->tid);
	buf_uleb(b, t->ns_tid);
	put_str(b, t->comm);
	if (t->from_ns)
		buf_uleb(b, t->from_ns);
}

bool cap_record_get_thread(struct rd *r, struct cap_thread *t)
{
	t->proc = get_u32(r);
	t->tid = get_u32(r);
	t->ns_tid = get_u32(r);
	t->comm = get_str(r);
	t->from_ns = rd_left(r) ? get_uleb(r) : 0;
	return !r->bad;
}

void cap_record_put_life(struct buf *b, const struct cap_life *l)
{
	buf_uleb(b, l->proc);
	buf_uleb(b, l->tid);
	buf_uleb(b, l->from_ns);
	buf_uleb(b, l->to_ns - l->from_ns);
	buf_uleb(b, l->on_cpu_ns);
	if (l->is_split)
		buf_uleb(b, l->runnable_ns);
}

bool cap_record_get_life(struct rd *r, struct cap_life *l)
{
	l->proc = get_u32(r);
	l->tid = get_u32(r);
	l->from_ns = get_uleb(r);
	l->to_ns = l->from_ns + get_uleb(r);
	l->on_cpu_ns = get_uleb(r);
	l->is_split = rd_left(r);
	l->runnable_ns = l->is_split ? get_uleb(r) : 0;
	return !r->bad;
}

void cap_record_put_map(struct buf *b, const struct cap_map *m)
{
	buf_uleb(b, m->proc);
	buf_uleb(b, (uint32_t)(m->file + 1)); /* CAPTURE_NONE is 0 */
	buf_uleb(b, m->prot);
	buf_uleb(b, m->flags);
	buf_uleb(b, m->from_ns);
	buf_uleb(b, m->start);
	buf_uleb(b, m->end - m->start);
	buf_uleb(b, m->offset);
}

bool cap_record_get_map(struct rd *r, struct cap_map *m)
{
	uint64_t len;

	m->proc = get_u32(r);
	m->file = get_u32(r) - 1;
	m->prot = get_u32(r);
	m->flags = get_u32(r);
	m->from_ns = get_uleb(r);
	m->start = get_uleb(r);
	len = get_uleb(r);
	m->end = m->start + len;
	m->offset = get_uleb(r);
	return !r->bad && m->end > m->start;
}

void cap_record_put_image(struct buf *b, const struct cap_image *i)
{
	buf_uleb(b, i->file);
	buf_uleb(b, i->len);
	buf_put(b, i->bytes, i->len);
}

bool cap_record_get_image(struct rd *r, struct cap_image *i)
{
	i->file = get_u32(r);
	i->len = get_u32(r);
	i->bytes = rd_bytes(r, i->len);
	return !r->bad;
}

void cap_record_put_ksym(struct buf *b, const struct cap_ksym *s)
{
	buf_uleb(b, s->start);
	buf_uleb(b, s->end - s->start);
	put_str(b, s->name);
	put_str(b, s->module);
}

bool cap_record_get_ksym(struct rd *r, struct cap_ksym *s)
{
	uint64_t len;

	s->start = get_uleb(r);
	len = get_uleb(r);
	s->end = s->start + len;
	s->name = get_str(r);
	s->module = get_str(r);
	return !r->bad && s->end > s->start;
}

void cap_record_put_stack(struct buf *b, const struct cap_stack *s)
{
	uint64_t before = 0;

	buf_uleb(b, s->id);
	buf_uleb(b, s->kind);
	buf_uleb(b, s->verdict);
	buf_uleb(b, s->reason);
	buf_sleb(b, s->error);
	buf_uleb(b, s->stop_pc);
	buf_uleb(b, s->len);
	for (uint32_t i = 0; i < s->len; i++) {
		buf_sleb(b, (int64_t)(s->frames[i] - before));
		before = s->frames[i];
	}
	/* the last fields: omitted if there are none, and in all stacks before 1.1 and 1.3 */
	if (!s->n_exact && !s->n_scripts)
		return;
	buf_uleb(b, s->n_exact);
	for (uint32_t i = 0; i < s->n_exact; i++)
		buf_uleb(b, s->exact[i] - (i ? s->exact[i - 1] : 0));
	if (!s->n_scripts)
		return;
	buf_uleb(b, s->n_scripts);
	for (uint32_t i = 0; i < s->n_scripts; i++) {
		buf_uleb(b, s->scripts[i].at - (i ? s->scripts[i - 1].at : 0));
		buf_uleb(b, s->scripts[i].frame);
	}
}

bool cap_record_get_stack(struct rd *r, struct cap_stack *s)
{
	s->id = get_u32(r);
	s->kind = get_u8(r);
	s->verdict = get_u8(r);
	s->reason = get_u8(r);
	s->error = get_s32(r);
	s->stop_pc = get_uleb(r);
	s->len = get_u32(r);
	s->n_exact = s->n_scripts = 0;
	s->frames = NULL;
	s->exact = NULL;
	s->scripts = NULL;
	return !r->bad && s->len <= rd_left(r); /* a frame takes at least one byte */
}

bool cap_record_get_frames(struct rd *r, uint64_t *frames, size_t n)
{
	uint64_t pc = 0;

	for (size_t i = 0; i < n; i++) {
		pc += (uint64_t)rd_sleb(r);
		frames[i] = pc;
	}
	return !r->bad;
}

bool cap_record_get_n_exact(struct rd *r, struct cap_stack *s)
{
	s->n_exact = rd_left(r) ? get_u32(r) : 0;
	return !r->bad && (!s->n_exact || s->n_exact < s->len);
}

bool cap_record_get_exact(struct rd *r, uint32_t *exact, const struct cap_stack *s)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < s->n_exact; i++) {
		uint32_t step = get_u32(r);

		at += step;
		if (r->bad || !step || at >= s->len)
			return false;
		exact[i] = (uint32_t)at;
	}
	return true;
}

bool cap_record_get_n_scripts(struct rd *r, struct cap_stack *s)
{
	s->n_scripts = rd_left(r) ? get_u32(r) : 0;
	/* each takes at least two bytes, and follows a native frame */
	return !r->bad && (!s->n_scripts || (s->len && s->n_scripts <= rd_left(r) / 2));
}

bool cap_record_get_scripts(struct rd *r, struct cap_script_at *scripts, const struct cap_stack *s)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < s->n_scripts; i++) {
		at += get_u32(r);
		scripts[i].frame = get_u32(r);
		if (r->bad || at >= s->len)
			return false;
		scripts[i].at = (uint32_t)at;
	}
	return true;
}

void cap_record_put_script(struct buf *b, const struct cap_script *s)
{
	buf_uleb(b, s->id);
	put_str(b, s->runtime);
	put_str(b, s->function);
	put_str(b, s->file);
	buf_uleb(b, s->line);
	buf_uleb(b, s->first_line);
}

bool cap_record_get_script(struct rd *r, struct cap_script *s)
{
	s->id = get_u32(r);
	s->runtime = get_str(r);
	s->function = get_str(r);
	s->file = get_str(r);
	s->line = get_u32(r);
	s->first_line = get_u32(r);
	return !r->bad;
}

void cap_record_put_waker(struct buf *b, const struct cap_waker *w)
{
	buf_uleb(b, w->id);
	buf_uleb(b, w->flags);
	buf_uleb(b, (uint32_t)(w->proc + 1)); /* CAPTURE_NONE is 0 */
	buf_uleb(b, w->tid);
	buf_uleb(b, w->kstack);
	buf_uleb(b, w->ustack);
	buf_uleb(b, w->next);
	buf_uleb(b, w->first_ns);
}

bool cap_record_get_waker(struct rd *r, struct cap_waker *w)
{
	w->id = get_u32(r);
	w->flags = get_u32(r);
	w->proc = get_u32(r) - 1;
	w->tid = get_u32(r);
	w->kstack = get_u32(r);
	w->ustack = get_u32(r);
	w->next = get_u32(r);
	w->first_ns = get_uleb(r);
	return !r->bad;
}

/* All of a key but the waker, which samples of earlier versions do not have. */
static void put_key(struct buf *b, const struct cap_sample *s)
{
	buf_uleb(b, s->proc);
	buf_uleb(b, s->tid);
	buf_uleb(b, s->kstack);
	buf_uleb(b, s->ustack);
	buf_uleb(b, s->state);
	buf_uleb(b, s->flags);
}

static void get_key(struct rd *r, struct cap_sample *s)
{
	s->proc = get_u32(r);
	s->tid = get_u32(r);
	s->kstack = get_u32(r);
	s->ustack = get_u32(r);
	s->state = get_u32(r);
	s->flags = get_u32(r);
}

void cap_record_put_sample(struct buf *b, const struct cap_sample *s, struct cap_record_state *state)
{
	put_key(b, s);
	buf_uleb(b, s->total_ns);
	buf_uleb(b, s->count);
	buf_uleb(b, s->max_ns);
	buf_sleb(b, (int64_t)(s->first_ns - state->first_ns));
	buf_sleb(b, (int64_t)(s->last_ns - s->first_ns));
	if (s->is_split || s->waker)
		buf_uleb(b, s->is_split ? s->runnable_ns : s->total_ns + 1); /* more than all: not known */
	if (s->waker)
		buf_uleb(b, s->waker);
	state->first_ns = s->first_ns;
}

bool cap_record_get_sample(struct rd *r, struct cap_sample *s, struct cap_record_state *state)
{
	get_key(r, s);
	s->total_ns = get_uleb(r);
	s->count = get_uleb(r);
	s->max_ns = get_uleb(r);
	s->first_ns = state->first_ns + (uint64_t)rd_sleb(r);
	s->last_ns = s->first_ns + (uint64_t)rd_sleb(r);
	s->runnable_ns = rd_left(r) ? get_uleb(r) : s->total_ns + 1;
	s->is_split = s->runnable_ns != s->total_ns + 1;
	if (!s->is_split)
		s->runnable_ns = 0;
	s->waker = rd_left(r) ? get_u32(r) : 0;
	state->first_ns = s->first_ns;
	return !r->bad;
}

void cap_record_put_key(struct buf *b, uint32_t id, const struct cap_sample *s)
{
	buf_uleb(b, id);
	put_key(b, s);
	buf_uleb(b, s->waker);
}

bool cap_record_get_key(struct rd *r, uint32_t *id, struct cap_sample *s)
{
	*id = get_u32(r);
	*s = (struct cap_sample){ 0 };
	get_key(r, s);
	s->waker = get_u32(r);
	return !r->bad;
}

void cap_record_put_wait(struct buf *b, const struct cap_wait *w, struct cap_record_state *state)
{
	buf_uleb(b, w->key);
	buf_sleb(b, (int64_t)(w->start_ns - state->first_ns));
	buf_uleb(b, w->total_ns);
	if (w->is_split)
		buf_uleb(b, w->runnable_ns);
	state->first_ns = w->start_ns;
}

bool cap_record_get_wait(struct rd *r, struct cap_wait *w, struct cap_record_state *state)
{
	w->key = get_u32(r);
	w->start_ns = state->first_ns + (uint64_t)rd_sleb(r);
	w->total_ns = get_uleb(r);
	w->is_split = rd_left(r) > 0;
	w->runnable_ns = w->is_split ? get_uleb(r) : 0;
	state->first_ns = w->start_ns;
	return !r->bad;
}

void cap_record_put_counter(struct buf *b, const struct cap_counter *c)
{
	put_str(b, c->name);
	buf_uleb(b, c->value);
}

bool cap_record_get_counter(struct rd *r, struct cap_counter *c)
{
	c->name = get_str(r);
	c->value = get_uleb(r);
	return !r->bad;
}

void cap_record_put_change(struct buf *b, const struct cap_change *c)
{
	buf_uleb(b, c->counter);
	buf_sleb(b, (int64_t)c->difference);
}

bool cap_record_get_change(struct rd *r, struct cap_change *c)
{
	c->counter = get_u32(r);
	c->difference = (uint64_t)rd_sleb(r);
	return !r->bad;
}

void cap_record_put_flush(struct buf *b, const struct cap_flush *f)
{
	buf_uleb(b, f->time_ns);
}

bool cap_record_get_flush(struct rd *r, struct cap_flush *f)
{
	f->time_ns = get_uleb(r);
	return !r->bad;
}

void cap_record_put_trailer(struct buf *b, const struct cap_trailer *t)
{
	buf_uleb(b, t->stop_ns);
	put_str(b, t->why);
}

bool cap_record_get_trailer(struct rd *r, struct cap_trailer *t)
{
	t->stop_ns = get_uleb(r);
	t->why = get_str(r);
	return !r->bad;
}

#define CAPTURE_BLOCK_MINOR                                                                                  \
	7 /* 1.1: exact frames of stacks; 1.2: strings, JIT code, names; 1.3: names' vaddr, script frames;   \
	     1.4: samples' runnable_ns, wakers; 1.5: keys, waits, threads' from_ns; 1.6: changes of          \
	     counters; 1.7: lives of threads */
#define CAPTURE_BLOCK_HEADER_MAX 4096 /* bytes, in any version */
#define CAPTURE_BLOCK_PAYLOAD_MAX (64 << 20) /* bytes: a longer block is not valid */

#define BYTE_ORDER_MARK 0x01020304
#define BYTE_ORDER_SWAPPED 0x04030201
#define CRC_LEN 4

static void put_le(uint8_t *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

/* --- the file header --- */

void cap_block_put_header(struct buf *b)
{
	size_t at = b->len;

	buf_put(b, CAPTURE_BLOCK_MAGIC, CAPTURE_BLOCK_MAGIC_LEN);
	buf_fixed(b, BYTE_ORDER_MARK, 4);
	buf_fixed(b, CAPTURE_BLOCK_HEADER_LEN, 4);
	buf_fixed(b, CAPTURE_BLOCK_MAJOR, 2);
	buf_fixed(b, CAPTURE_BLOCK_MINOR, 2);
	if (!b->failed)
		buf_fixed(b, crc32c(0, b->p + at, CAPTURE_BLOCK_HEADER_LEN - CRC_LEN), CRC_LEN);
}

enum cap_block_header cap_block_get_header(const void *bytes, size_t len, struct cap_block_version *v)
{
	struct rd r = rd_init(bytes, len), crc;
	uint32_t mark;

	if (!len || memcmp(bytes, CAPTURE_BLOCK_MAGIC, MIN(len, CAPTURE_BLOCK_MAGIC_LEN)) != 0)
		return CAPTURE_BLOCK_FOREIGN;
	if (len < CAPTURE_BLOCK_HEADER_LEN)
		return CAPTURE_BLOCK_SHORT;
	rd_bytes(&r, CAPTURE_BLOCK_MAGIC_LEN);
	mark = rd_u32(&r);
	if (mark == BYTE_ORDER_SWAPPED)
		return CAPTURE_BLOCK_BYTE_ORDER;
	v->header_len = rd_u32(&r);
	if (mark != BYTE_ORDER_MARK || v->header_len < CAPTURE_BLOCK_HEADER_LEN ||
		v->header_len > CAPTURE_BLOCK_HEADER_MAX)
		return CAPTURE_BLOCK_DAMAGED;
	v->major = rd_u16(&r);
	v->minor = rd_u16(&r);
	if (len < v->header_len)
		return CAPTURE_BLOCK_SHORT;
	crc = rd_init((const uint8_t *)bytes + v->header_len - CRC_LEN, CRC_LEN);
	if (rd_u32(&crc) != crc32c(0, bytes, v->header_len - CRC_LEN))
		return CAPTURE_BLOCK_DAMAGED;
	return v->major > CAPTURE_BLOCK_MAJOR ? CAPTURE_BLOCK_NEWER : CAPTURE_BLOCK_OK;
}

/* --- blocks --- */

static uint32_t block_crc(const uint8_t *header, const void *payload, size_t len)
{
	return crc32c(crc32c(0, header, CAPTURE_BLOCK_HEAD_LEN - CRC_LEN), payload, len);
}

void cap_block_put(uint8_t header[CAPTURE_BLOCK_HEAD_LEN], unsigned int type, uint32_t seq,
	const void *payload, size_t len)
{
	put_le(header, CAPTURE_BLOCK_SYNC, 4);
	put_le(header + 4, type, 2);
	put_le(header + 6, 0, 2);
	put_le(header + 8, len, 4);
	put_le(header + 12, seq, 4);
	put_le(header + 16, block_crc(header, payload, len), CRC_LEN);
}

bool cap_block_get(const uint8_t header[CAPTURE_BLOCK_HEAD_LEN], struct cap_block *b)
{
	struct rd r = rd_init(header, CAPTURE_BLOCK_HEAD_LEN);

	if (rd_u32(&r) != CAPTURE_BLOCK_SYNC)
		return false;
	b->type = rd_u16(&r);
	b->flags = rd_u16(&r);
	b->len = rd_u32(&r);
	b->seq = rd_u32(&r);
	b->crc = rd_u32(&r);
	return b->len <= CAPTURE_BLOCK_PAYLOAD_MAX;
}

bool cap_block_intact(const uint8_t header[CAPTURE_BLOCK_HEAD_LEN], const struct cap_block *b)
{
	return block_crc(header, header + CAPTURE_BLOCK_HEAD_LEN, b->len) == b->crc;
}

static const char malformed[] = "a malformed record";
static const char no_string[] = "a string that is not there";
static const char no_memory[] = "";

#define FRAME_BYTES_MIN 5 /* five numbers of at least one byte each */

#define ROOM(c, array, count) (base_grow(&(c)->array, &(c)->room.array, (count), sizeof(*(c)->array)) == 0)

/* --- writing --- */

void cap_code_names_put_string(struct buf *b, uint32_t id, const char *text)
{
	buf_uleb(b, id);
	buf_str(b, text);
	buf_put(b, "", 1);
}

void cap_code_names_put_jit(struct buf *b, const struct cap_jit *j, cap_code_names_ref *ref, void *ctx)
{
	buf_uleb(b, j->proc);
	buf_uleb(b, j->kind);
	buf_uleb(b, j->from_ns);
	buf_uleb(b, j->to_ns + 1); /* UINT64_MAX is 0 */
	buf_uleb(b, j->start);
	buf_uleb(b, j->end - j->start);
	buf_uleb(b, ref(ctx, j->name));
	buf_uleb(b, ref(ctx, j->file));
	buf_uleb(b, j->line);
	buf_uleb(b, j->offset);
}

void cap_code_names_put_name(struct buf *b, const struct cap_name *n, cap_code_names_ref *ref, void *ctx)
{
	buf_uleb(b, n->file);
	buf_uleb(b, n->offset);
	buf_uleb(b, n->symbol_offset);
	buf_uleb(b, n->source);
	buf_uleb(b, n->reason);
	buf_uleb(b, n->n);
	for (uint32_t i = 0; i < n->n; i++) {
		const struct cap_name_frame *f = &n->frames[i];

		buf_uleb(b, ref(ctx, f->name));
		buf_uleb(b, ref(ctx, f->linkage));
		buf_uleb(b, ref(ctx, f->file));
		buf_uleb(b, f->line);
		buf_uleb(b, f->column);
	}
	buf_sleb(b, (int64_t)(n->vaddr - n->offset));
}

/* --- reading --- */

/* 0 is "". NULL for an unknown id. */
static const char *get_ref(const struct cap_code_names *c, struct rd *r)
{
	uint64_t ref = rd_uleb(r);

	if (!ref)
		return "";
	return ref <= c->n.strings ? c->strings[ref - 1] : NULL;
}

const char *cap_code_names_take_string(struct cap_code_names *c, struct rd *r)
{
	uint32_t id = rd_uleb32(r);
	uint64_t len = rd_uleb(r);
	const char *s = len < rd_left(r) ? rd_bytes(r, (size_t)len + 1) : NULL;

	if (r->bad || !s || strnlen(s, (size_t)len + 1) != len)
		return malformed;
	if (id != c->n.strings)
		return "a string id out of order";
	if (!ROOM(c, strings, c->n.strings + 1))
		return no_memory;
	c->strings[c->n.strings++] = s;
	return NULL;
}

const char *cap_code_names_take_jit(struct cap_code_names *c, struct rd *r, size_t n_procs)
{
	struct cap_jit j = { .proc = rd_uleb32(r), .kind = get_u8(r) };
	uint64_t len;

	j.from_ns = rd_uleb(r);
	j.to_ns = rd_uleb(r) - 1;
	j.start = rd_uleb(r);
	len = rd_uleb(r);
	j.end = j.start + len;
	j.name = get_ref(c, r);
	j.file = get_ref(c, r);
	j.line = rd_uleb32(r);
	j.offset = rd_uleb(r);
	if (r->bad || j.end <= j.start)
		return malformed;
	if (j.proc >= n_procs)
		return "JIT code of a process that is not there";
	if (!j.name || !j.file)
		return no_string;
	if (!ROOM(c, jits, c->n.jits + 1))
		return no_memory;
	c->jits[c->n.jits++] = j;
	return NULL;
}

/* Decode the N frames of a name and append them. */
static const char *take_frames(struct cap_code_names *c, struct rd *r, uint32_t n)
{
	if (!ROOM(c, frames, c->n.frames + n))
		return no_memory;
	for (uint32_t i = 0; i < n; i++) {
		struct cap_name_frame *f = &c->frames[c->n.frames++];

		f->name = get_ref(c, r);
		f->linkage = get_ref(c, r);
		f->file = get_ref(c, r);
		f->line = rd_uleb32(r);
		f->column = rd_uleb32(r);
		if (r->bad)
			return malformed;
		if (!f->name || !f->linkage || !f->file)
			return no_string;
	}
	return NULL;
}

const char *cap_code_names_take_name(struct cap_code_names *c, struct rd *r, size_t n_files)
{
	struct cap_name n = { .file = rd_uleb32(r) };
	const char *complaint;

	n.offset = rd_uleb(r);
	n.symbol_offset = rd_uleb(r);
	n.source = get_u8(r);
	n.reason = get_u8(r);
	n.n = rd_uleb32(r);
	if (r->bad || n.n > rd_left(r) / FRAME_BYTES_MIN)
		return malformed;
	if (n.file >= n_files)
		return "a name in a file that is not there";
	if (!ROOM(c, names, c->n.names + 1))
		return no_memory;
	complaint = take_frames(c, r, n.n);
	if (complaint)
		return complaint;
	n.vaddr = n.offset + (rd_left(r) ? (uint64_t)rd_sleb(r) : 0);
	if (r->bad)
		return malformed;
	c->names[c->n.names++] = n;
	return NULL;
}

/* --- after the last record --- */

static int jit_cmp(const void *a, const void *b)
{
	const struct cap_jit *x = a, *y = b;
	int c = CMP(x->proc, y->proc);

	c = c ? c : CMP(x->start, y->start);
	c = c ? c : CMP(x->from_ns, y->from_ns);
	return c ? c : CMP(x->kind, y->kind);
}

static int name_cmp(const void *a, const void *b)
{
	const struct cap_name *x = a, *y = b;

	return x->file != y->file ? CMP(x->file, y->file) : CMP(x->offset, y->offset);
}

int cap_code_names_settle(struct cap_code_names *c)
{
	size_t at = c->settled.frames;

	for (size_t i = 0; i < c->settled.names; i++)
		if (c->names[i].n)
			c->names[i].frames = c->frames + (c->names[i].frames - c->settled_at);
	for (size_t i = c->settled.names; i < c->n.names; i++) {
		c->names[i].frames = c->frames ? c->frames + at : NULL;
		at += c->names[i].n;
	}
	if (sortlast(&c->jits, &c->n.jits, sizeof(*c->jits), jit_cmp) != 0 ||
		sortlast(&c->names, &c->n.names, sizeof(*c->names), name_cmp) != 0)
		return -ENOMEM;
	c->room.jits = c->n.jits;
	c->room.names = c->n.names;
	c->settled = c->n;
	c->settled_at = c->frames;
	return 0;
}

void cap_code_names_free(struct cap_code_names *c)
{
	free(c->strings);
	free(c->jits);
	free(c->names);
	free(c->frames);
}
