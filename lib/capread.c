/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capread.h"
#include "capcodec.h"
#include "capmaps.h"
#include "capslurp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* Room of the arrays, in elements. */
struct rooms {
	size_t options, procs, threads, files, maps, images, ksyms, stacks, samples, counters, frames,
	        pending;
};

struct load {
	struct capread c; /* what the caller sees: first, so that one pointer is both */
	struct rooms room;
	bool has_host, has_trailer;
	uint64_t *frames; /* of all stacks in order; it moves as it grows */
	size_t n_frames;
	struct cap_sample *pending; /* of the block being read */
	size_t n_pending;
	uint32_t *slots; /* hash table over samples: index + 1, 0 = free */
	size_t n_slots; /* a power of two */
	struct capmaps *maps;
	uint8_t *owned; /* the file's bytes, where capread_load() read them */
	const char *wrong; /* what is wrong with a record */
	bool no_memory;
};

static bool wrong(struct load *l, const char *what)
{
	l->wrong = what;
	return false;
}

/* Room for one more; a macro because the arrays have as many types as there are. */
#define MORE(l, array, n, cap)                                                                               \
	(base_grow(&(array), &(cap), (n) + 1, sizeof(*(array))) == 0 || !((l)->no_memory = true))

/* --- one record: decode, check what it refers to, append --- */

static bool take_host(struct load *l, struct rd *r)
{
	struct cap_host h;

	if (l->has_host)
		return wrong(l, "a second host record");
	if (!capcodec_get_host(r, &h))
		return wrong(l, "a malformed record");
	l->c.host = h;
	return l->has_host = true;
}

static bool take_option(struct load *l, struct rd *r)
{
	struct capread *c = &l->c;

	if (!MORE(l, c->options, c->n_options, l->room.options))
		return false;
	if (!capcodec_get_option(r, &c->options[c->n_options]))
		return wrong(l, "a malformed record");
	c->n_options++;
	return true;
}

static bool take_file(struct load *l, struct rd *r)
{
	struct capread *c = &l->c;

	if (!MORE(l, c->files, c->n_files, l->room.files))
		return false;
	if (!capcodec_get_file(r, &c->files[c->n_files]))
		return wrong(l, "a malformed record");
	if (c->files[c->n_files].id != c->n_files)
		return wrong(l, "a file id out of order");
	c->n_files++;
	return true;
}

static bool take_proc(struct load *l, struct rd *r)
{
	struct capread *c = &l->c;

	if (!MORE(l, c->procs, c->n_procs, l->room.procs))
		return false;
	if (!capcodec_get_proc(r, &c->procs[c->n_procs]))
		return wrong(l, "a malformed record");
	if (c->procs[c->n_procs].id != c->n_procs)
		return wrong(l, "a process id out of order");
	c->n_procs++;
	return true;
}

static bool take_thread(struct load *l, struct rd *r)
{
	struct capread *c = &l->c;

	if (!MORE(l, c->threads, c->n_threads, l->room.threads))
		return false;
	if (!capcodec_get_thread(r, &c->threads[c->n_threads]))
		return wrong(l, "a malformed record");
	if (c->threads[c->n_threads].proc >= c->n_procs)
		return wrong(l, "a thread of a process that is not there");
	c->n_threads++;
	return true;
}

static bool take_map(struct load *l, struct rd *r)
{
	struct capread *c = &l->c;
	struct cap_map *m;

	if (!MORE(l, c->maps, c->n_maps, l->room.maps))
		return false;
	m = &c->maps[c->n_maps];
	if (!capcodec_get_map(r, m))
		return wrong(l, "a malformed record");
	if (m->proc >= c->n_procs)
		return wrong(l, "a mapping of a process that is not there");
	if (m->file != CAP_NONE && m->file >= c->n_files)
		return wrong(l, "a mapping of a file that is not there");
	c->n_maps++;
	return true;
}

static bool take_image(struct load *l, struct rd *r)
{
	struct capread *c = &l->c;

	if (!MORE(l, c->images, c->n_images, l->room.images))
		return false;
	if (!capcodec_get_image(r, &c->images[c->n_images]))
		return wrong(l, "a malformed record");
	if (c->images[c->n_images].file >= c->n_files)
		return wrong(l, "an image of a file that is not there");
	c->n_images++;
	return true;
}

static bool take_ksym(struct load *l, struct rd *r)
{
	struct capread *c = &l->c;

	if (!MORE(l, c->ksyms, c->n_ksyms, l->room.ksyms))
		return false;
	if (!capcodec_get_ksym(r, &c->ksyms[c->n_ksyms]))
		return wrong(l, "a malformed record");
	c->n_ksyms++;
	return true;
}

static bool take_stack(struct load *l, struct rd *r)
{
	struct capread *c = &l->c;
	struct cap_stack *s;

	if (!MORE(l, c->stacks, c->n_stacks, l->room.stacks))
		return false;
	s = &c->stacks[c->n_stacks];
	if (!capcodec_get_stack(r, s))
		return wrong(l, "a malformed record");
	if (s->id != c->n_stacks)
		return wrong(l, "a stack id out of order");
	if (base_grow(&l->frames, &l->room.frames, l->n_frames + s->len, sizeof(*l->frames)) != 0)
		return !(l->no_memory = true);
	if (!capcodec_get_frames(r, l->frames + l->n_frames, s->len))
		return wrong(l, "a malformed record");
	l->n_frames += s->len;
	c->n_stacks++;
	return true;
}

static bool is_stack(const struct capread *c, uint32_t id, enum cap_stack_kind kind)
{
	return id < c->n_stacks && c->stacks[id].kind == kind;
}

static bool take_sample(struct load *l, struct rd *r, struct capcodec_state *state)
{
	struct capread *c = &l->c;
	struct cap_sample *s;

	if (!MORE(l, l->pending, l->n_pending, l->room.pending))
		return false;
	s = &l->pending[l->n_pending];
	if (!capcodec_get_sample(r, s, state))
		return wrong(l, "a malformed record");
	if (s->proc >= c->n_procs)
		return wrong(l, "a sample of a process that is not there");
	if (!is_stack(c, s->kstack, CAP_STACK_KERNEL) || !is_stack(c, s->ustack, CAP_STACK_USER))
		return wrong(l, "a sample with a stack that is not there");
	l->n_pending++;
	return true;
}

static bool take_counter(struct load *l, struct rd *r)
{
	struct capread *c = &l->c;

	if (!MORE(l, c->counters, c->n_counters, l->room.counters))
		return false;
	if (!capcodec_get_counter(r, &c->counters[c->n_counters]))
		return wrong(l, "a malformed record");
	c->n_counters++;
	return true;
}

static bool take_flush(struct load *l, struct rd *r)
{
	struct cap_flush f;

	if (!capcodec_get_flush(r, &f))
		return wrong(l, "a malformed record");
	l->c.last_flush_ns = f.time_ns;
	return true;
}

static bool take_trailer(struct load *l, struct rd *r)
{
	struct cap_trailer t;

	if (!capcodec_get_trailer(r, &t))
		return wrong(l, "a malformed record");
	l->c.trailer = t;
	return l->has_trailer = true;
}

static bool take(struct load *l, unsigned int type, struct rd *record, struct capcodec_state *state)
{
	switch (type) {
	case CAPCODEC_HOST:
		return take_host(l, record);
	case CAPCODEC_OPTION:
		return take_option(l, record);
	case CAPCODEC_FILE:
		return take_file(l, record);
	case CAPCODEC_PROC:
		return take_proc(l, record);
	case CAPCODEC_THREAD:
		return take_thread(l, record);
	case CAPCODEC_MAP:
		return take_map(l, record);
	case CAPCODEC_IMAGE:
		return take_image(l, record);
	case CAPCODEC_KSYM:
		return take_ksym(l, record);
	case CAPCODEC_STACK:
		return take_stack(l, record);
	case CAPCODEC_SAMPLE:
		return take_sample(l, record, state);
	case CAPCODEC_COUNTER:
		return take_counter(l, record);
	case CAPCODEC_FLUSH:
		return take_flush(l, record);
	default:
		return take_trailer(l, record);
	}
}

/* --- merging samples --- */

static uint64_t hash_sample(const struct cap_sample *s)
{
	uint64_t h = (uint64_t)s->proc << 32 | s->tid;

	h = (h ^ h >> 29) * UINT64_C(0x9e3779b97f4a7c15);
	h ^= (uint64_t)s->kstack << 32 | s->ustack;
	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	h ^= (uint64_t)s->flags << 32 | s->state;
	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return h ^ h >> 32;
}

static bool same_key(const struct cap_sample *a, const struct cap_sample *b)
{
	return a->ustack == b->ustack && a->kstack == b->kstack && a->tid == b->tid && a->proc == b->proc &&
	       a->state == b->state && a->flags == b->flags;
}

/* The slot of S's key, or the free one where it belongs. */
static uint32_t *find_slot(const struct load *l, const struct cap_sample *s)
{
	size_t at = hash_sample(s) & (l->n_slots - 1);

	while (l->slots[at] && !same_key(&l->c.samples[l->slots[at] - 1], s))
		at = (at + 1) & (l->n_slots - 1);
	return &l->slots[at];
}

/* At most half full, for N samples. */
static bool room_in_slots(struct load *l, size_t n)
{
	size_t want = l->n_slots ? l->n_slots : 64;
	uint32_t *bigger;

	while (want / 2 < n)
		want *= 2;
	if (want == l->n_slots)
		return true;
	bigger = n < UINT32_MAX ? calloc(want, sizeof(*bigger)) : NULL;
	if (!bigger)
		return !(l->no_memory = true);
	free(l->slots);
	l->slots = bigger;
	l->n_slots = want;
	for (size_t i = 0; i < l->c.n_samples; i++)
		*find_slot(l, &l->c.samples[i]) = (uint32_t)i + 1;
	return true;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static bool merge_sample(struct load *l, const struct cap_sample *s)
{
	struct capread *c = &l->c;
	struct cap_sample *into;
	uint32_t *slot;

	if (!room_in_slots(l, c->n_samples + 1) || !MORE(l, c->samples, c->n_samples, l->room.samples))
		return false;
	slot = find_slot(l, s);
	if (!*slot) {
		c->samples[c->n_samples++] = *s;
		*slot = (uint32_t)c->n_samples;
		return true;
	}
	into = &c->samples[*slot - 1];
	into->total_ns = add_saturating(into->total_ns, s->total_ns);
	into->count = add_saturating(into->count, s->count);
	into->max_ns = MAX(into->max_ns, s->max_ns);
	into->first_ns = MIN(into->first_ns, s->first_ns);
	into->last_ns = MAX(into->last_ns, s->last_ns);
	return true;
}

/* --- blocks --- */

/* The records of a block; where one is wrong, none of them counts. */
static bool take_records(struct load *l, const struct capcodec_block *b, const uint8_t *payload)
{
	struct rd r = rd_init(payload, b->len), record;
	struct capcodec_state state = {0};
	const struct capread before = l->c;
	size_t frames = l->n_frames;
	bool fine = true;

	l->n_pending = 0;
	while (fine && capcodec_next(&r, &record))
		fine = take(l, b->type, &record, &state);
	if (fine && r.bad)
		fine = wrong(l, "a record that ends behind its block");
	for (size_t i = 0; fine && i < l->n_pending; i++)
		fine = merge_sample(l, &l->pending[i]);
	if (fine)
		return true;
	l->c.n_options = before.n_options, l->c.n_files = before.n_files;
	l->c.n_procs = before.n_procs, l->c.n_threads = before.n_threads;
	l->c.n_maps = before.n_maps, l->c.n_images = before.n_images;
	l->c.n_ksyms = before.n_ksyms, l->c.n_stacks = before.n_stacks;
	l->c.n_counters = before.n_counters, l->n_frames = frames;
	l->c.host = before.host, l->c.trailer = before.trailer;
	l->c.last_flush_ns = before.last_flush_ns;
	l->has_trailer = false;
	return false;
}

enum found { FOUND_END, FOUND_CUT, FOUND_NO_BLOCK, FOUND_CHECKSUM, FOUND_SEQUENCE, FOUND_RECORD, FOUND_REST };

struct place {
	enum found what;
	struct capcodec_block block;
};

/* Take blocks from good_bytes on until the end or the first that is not right. */
static struct place take_blocks(struct load *l, const uint8_t *bytes, size_t len)
{
	struct capread *c = &l->c;
	struct place at = {.what = FOUND_END};

	for (; c->good_bytes < len; c->good_bytes += CAPCODEC_BLOCK_LEN + at.block.len, c->blocks++) {
		const uint8_t *header = bytes + c->good_bytes;
		size_t left = len - (size_t)c->good_bytes;

		at.block = (struct capcodec_block){0};
		if (l->has_trailer)
			at.what = FOUND_REST;
		else if (left < CAPCODEC_BLOCK_LEN)
			at.what = FOUND_CUT;
		else if (!capcodec_get_block(header, &at.block))
			at.what = FOUND_NO_BLOCK;
		else if (left - CAPCODEC_BLOCK_LEN < at.block.len)
			at.what = FOUND_CUT;
		else if (!capcodec_intact(header, &at.block))
			at.what = FOUND_CHECKSUM;
		else if (at.block.seq != (uint32_t)c->blocks)
			at.what = FOUND_SEQUENCE;
		else if (!at.block.type || at.block.type >= CAPCODEC_TYPES || at.block.flags)
			c->unknown_blocks++;
		else if (!take_records(l, &at.block, header + CAPCODEC_BLOCK_LEN))
			at.what = FOUND_RECORD;
		if (at.what != FOUND_END || l->no_memory)
			break;
	}
	return at;
}

/* --- what is missing --- */

/* What can still be made out behind the damage. */
struct rest {
	uint64_t blocks;
	uint64_t flush_ns; /* of the last flush; 0 = none */
	bool trailer;
};

static void look_at(struct rest *rest, const struct capcodec_block *b, const uint8_t *payload)
{
	struct rd r = rd_init(payload, b->len), record;
	struct cap_flush f;

	rest->blocks++;
	if (b->type == CAPCODEC_TRAILER)
		rest->trailer = true;
	if (b->type == CAPCODEC_FLUSH && capcodec_next(&r, &record) && capcodec_get_flush(&record, &f))
		rest->flush_ns = f.time_ns;
}

/*
 * Look for intact blocks in what cannot be used. Bytes that only look like a
 * block cost a checksum each; BUDGET keeps a file full of them from taking
 * for ever.
 */
static struct rest survey(const uint8_t *p, size_t len)
{
	const uint8_t sync[] = {CAPCODEC_SYNC & 255, CAPCODEC_SYNC >> 8 & 255, CAPCODEC_SYNC >> 16 & 255,
	        CAPCODEC_SYNC >> 24};
	const uint8_t *end = p + len;
	uint64_t budget = (uint64_t)len * 8;
	struct capcodec_block b;
	struct rest rest = {0};

	while ((p = memmem(p, (size_t)(end - p), sync, sizeof(sync)))) {
		if ((size_t)(end - p) < CAPCODEC_BLOCK_LEN)
			break;
		if (!capcodec_get_block(p, &b) || b.len > (size_t)(end - p) - CAPCODEC_BLOCK_LEN) {
			p++;
			continue;
		}
		if (budget < b.len)
			break;
		budget -= b.len;
		if (!capcodec_intact(p, &b)) {
			p++;
			continue;
		}
		look_at(&rest, &b, p + CAPCODEC_BLOCK_LEN);
		p += CAPCODEC_BLOCK_LEN + b.len;
	}
	return rest;
}

static void say(struct capread *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say(struct capread *c, const char *fmt, ...)
{
	size_t len = strlen(c->damage);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->damage + len, sizeof(c->damage) - len, fmt, ap);
	va_end(ap);
}

static double since_start(const struct capread *c, uint64_t time_ns)
{
	return time_ns > c->host.start_mono_ns ? (double)(time_ns - c->host.start_mono_ns) / 1e9 : 0;
}

static void say_where(const struct load *l, struct capread *c, const struct place *at)
{
	const char *type = capcodec_type_name(at->block.type);
	uint64_t pos = c->good_bytes, total = c->total_bytes;

	switch (at->what) {
	case FOUND_END:
		say(c, "ends at byte %" PRIu64 " without a trailer", total);
		break;
	case FOUND_CUT:
		say(c, "cut at byte %" PRIu64 ": the block at byte %" PRIu64 " (%s) is incomplete", total,
		        pos, type);
		break;
	case FOUND_NO_BLOCK:
		say(c, "damaged at byte %" PRIu64 " of %" PRIu64 ": no block begins there", pos, total);
		break;
	case FOUND_CHECKSUM:
		say(c, "damaged at byte %" PRIu64 " of %" PRIu64 ": wrong checksum of a block (%s)", pos,
		        total, type);
		break;
	case FOUND_SEQUENCE:
		say(c, "damaged at byte %" PRIu64 " of %" PRIu64 ": block %" PRIu32 " follows block %" PRIu64,
		        pos, total, at->block.seq, c->blocks);
		break;
	case FOUND_RECORD:
		say(c, "damaged at byte %" PRIu64 " of %" PRIu64 ": %s in a block (%s)", pos, total,
		        l->wrong ? l->wrong : "a wrong record", type);
		break;
	case FOUND_REST:
		say(c, "damaged at byte %" PRIu64 " of %" PRIu64 ": something follows the trailer", pos,
		        total);
		break;
	}
}

/* Fill in `damage`, where there is any. */
static void judge(struct load *l, const struct place *at, const uint8_t *bytes, size_t len)
{
	struct capread *c = &l->c;
	struct rest rest = {0};

	if (at->what == FOUND_END && l->has_trailer && c->good_bytes == c->total_bytes) {
		c->complete = true;
		return;
	}
	say_where(l, c, at);
	if (l->has_trailer) {
		say(c, "; no waits are missing");
		return;
	}
	if (at->what != FOUND_END)
		rest = survey(bytes + c->good_bytes + 1, len - (size_t)c->good_bytes - 1);
	if (!c->last_flush_ns)
		say(c, "; all waits are missing");
	else
		say(c, "; waits after %.3f s of recording are missing", since_start(c, c->last_flush_ns));
	if (rest.flush_ns)
		say(c, ", %s %.3f s", rest.trailer ? "up to its end at" : "at least up to",
		        since_start(c, rest.flush_ns));
	if (rest.blocks)
		say(c, " (%" PRIu64 " later blocks are intact, but what they refer to may not be)",
		        rest.blocks);
}

/* --- putting the arrays in order --- */

/* As sort keeps equal ones in no order: an element and where it was. */
struct ranked_thread {
	struct cap_thread t;
	size_t rank;
};

struct ranked_counter {
	struct cap_counter c;
	size_t rank;
};

struct ranked_ksym {
	struct cap_ksym s;
	size_t rank;
};

static int thread_cmp(const struct cap_thread *a, const struct cap_thread *b)
{
	return a->proc != b->proc ? CMP(a->proc, b->proc) : CMP(a->tid, b->tid);
}

static int by_thread(const void *a, const void *b)
{
	const struct ranked_thread *x = a, *y = b;
	int c = thread_cmp(&x->t, &y->t);

	return c ? c : CMP(x->rank, y->rank);
}

static int by_name(const void *a, const void *b)
{
	const struct ranked_counter *x = a, *y = b;
	int c = strcmp(x->c.name, y->c.name);

	return c ? c : CMP(x->rank, y->rank);
}

static int by_start(const void *a, const void *b)
{
	const struct ranked_ksym *x = a, *y = b;
	int c = CMP(x->s.start, y->s.start);

	return c ? c : CMP(x->rank, y->rank);
}

static int settle_threads(struct capread *c)
{
	_cleanup_free_ struct ranked_thread *r = calloc(c->n_threads + 1, sizeof(*r));
	size_t n = 0;

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_threads; i++)
		r[i] = (struct ranked_thread){c->threads[i], i};
	qsort(r, c->n_threads, sizeof(*r), by_thread);
	for (size_t i = 0; i < c->n_threads; i++) {
		if (n && thread_cmp(&c->threads[n - 1], &r[i].t) == 0)
			n--;
		c->threads[n++] = r[i].t;
	}
	c->n_threads = n;
	return 0;
}

static int settle_counters(struct capread *c)
{
	_cleanup_free_ struct ranked_counter *r = calloc(c->n_counters + 1, sizeof(*r));
	size_t n = 0;

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_counters; i++)
		r[i] = (struct ranked_counter){c->counters[i], i};
	qsort(r, c->n_counters, sizeof(*r), by_name);
	for (size_t i = 0; i < c->n_counters; i++) {
		if (n && strcmp(c->counters[n - 1].name, r[i].c.name) == 0)
			n--;
		c->counters[n++] = r[i].c;
	}
	c->n_counters = n;
	return 0;
}

/* One start, one symbol; and none reaches into the next. */
static int settle_ksyms(struct capread *c)
{
	_cleanup_free_ struct ranked_ksym *r = calloc(c->n_ksyms + 1, sizeof(*r));
	size_t n = 0;

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_ksyms; i++)
		r[i] = (struct ranked_ksym){c->ksyms[i], i};
	qsort(r, c->n_ksyms, sizeof(*r), by_start);
	for (size_t i = 0; i < c->n_ksyms; i++) {
		if (n && c->ksyms[n - 1].start == r[i].s.start)
			n--;
		else if (n)
			c->ksyms[n - 1].end = MIN(c->ksyms[n - 1].end, r[i].s.start);
		c->ksyms[n++] = r[i].s;
	}
	c->n_ksyms = n;
	return 0;
}

static int settle(struct load *l)
{
	struct capread *c = &l->c;
	size_t at = 0;

	for (size_t i = 0; i < c->n_stacks; i++) {
		c->stacks[i].frames = l->frames ? l->frames + at : NULL;
		at += c->stacks[i].len;
	}
	if (settle_threads(c) != 0 || settle_counters(c) != 0 || settle_ksyms(c) != 0)
		return -ENOMEM;
	return capmaps_new(c->maps, c->n_maps, c->n_procs, &l->maps);
}

/* --- the whole --- */

DEFINE_CLEANUP(struct capread *, capread_free);

static int check_header(const void *bytes, size_t len, struct capcodec_version *v, struct err *e)
{
	switch (capcodec_get_header(bytes, len, v)) {
	case CAPCODEC_OK:
		return 0;
	case CAPCODEC_SHORT:
		return err_set(
		        e, -EINVAL, "cut at byte %zu, inside the file header: nothing can be read", len);
	case CAPCODEC_BYTE_ORDER:
		return err_set(e, -EINVAL, "a capture in the other byte order, which is not read here");
	case CAPCODEC_DAMAGED:
		return err_set(e, -EINVAL, "the file header is damaged: nothing can be read");
	case CAPCODEC_NEWER:
		err_set(e, -EINVAL, "a capture of format %u.%u; this reads formats up to %u", v->major,
		        v->minor, CAPCODEC_MAJOR);
		err_hint(e, "use a newer stacktools");
		return -EINVAL;
	default:
		err_set(e, -EINVAL, len ? "not a capture" : "empty, not a capture");
		err_hint(e, "a capture is what offcpu-record -o FILE writes");
		return -EINVAL;
	}
}

static int parse(const void *bytes, size_t len, uint64_t total, struct load *l, struct err *e)
{
	struct capcodec_version v;
	struct place at;
	int code = check_header(bytes, len, &v, e);

	if (code)
		return code;
	l->c.host = (struct cap_host){"", "", "", "", "", "", "", .stext = 0};
	l->c.trailer.why = "";
	l->c.total_bytes = total;
	l->c.good_bytes = v.header_len;
	at = take_blocks(l, bytes, len);
	if (l->no_memory || settle(l) != 0)
		return err_nomem(e, "the capture");
	judge(l, &at, bytes, len);
	return 0;
}

int capread_parse(const void *bytes, size_t len, struct capread **ret, struct err *e)
{
	struct load *l = calloc(1, sizeof(*l));
	CLEANUP(capread_free_p) struct capread *c = l ? &l->c : NULL;
	int code = l ? parse(bytes, len, len, l, e) : err_nomem(e, "the capture");

	if (code)
		return code;
	*ret = TAKE_PTR(c);
	return 0;
}

int capread_load(const char *path, struct capread **ret, struct err *e)
{
	struct load *l = calloc(1, sizeof(*l));
	CLEANUP(capread_free_p) struct capread *c = l ? &l->c : NULL;
	struct capslurp s;
	int code;

	if (!l)
		return err_nomem(e, "the capture");
	code = capslurp_read(path, &s, e);
	if (code)
		return code;
	l->owned = s.bytes;
	code = parse(s.bytes, s.len, s.total, l, e);
	if (code == -EINVAL)
		err_prefix(e, "'%s'", path && strcmp(path, "-") != 0 ? path : "standard input");
	if (code)
		return code;
	*ret = TAKE_PTR(c);
	return 0;
}

void capread_free(struct capread *c)
{
	struct load *l = (struct load *)c;

	if (!l)
		return;
	free(c->options);
	free(c->procs);
	free(c->threads);
	free(c->files);
	free(c->maps);
	free(c->images);
	free(c->ksyms);
	free(c->stacks);
	free(c->samples);
	free(c->counters);
	free(l->frames);
	free(l->pending);
	free(l->slots);
	free(l->owned);
	capmaps_free(l->maps);
	free(l);
}

/* --- looking things up --- */

const struct cap_ksym *capread_ksym(const struct capread *c, uint64_t addr)
{
	size_t lo = 0, hi = c->n_ksyms;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->ksyms[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr < c->ksyms[lo - 1].end ? &c->ksyms[lo - 1] : NULL;
}

const struct cap_thread *capread_thread(const struct capread *c, uint32_t proc, uint32_t tid)
{
	struct cap_thread key = {.proc = proc, .tid = tid};
	size_t lo = 0, hi = c->n_threads;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (thread_cmp(&c->threads[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->n_threads && thread_cmp(&c->threads[lo], &key) == 0 ? &c->threads[lo] : NULL;
}

uint64_t capread_counter(const struct capread *c, const char *name)
{
	for (size_t i = 0; i < c->n_counters; i++)
		if (strcmp(c->counters[i].name, name) == 0)
			return c->counters[i].value;
	return 0;
}

const struct cap_map *capread_map(const struct capread *c, uint32_t proc, uint64_t addr, uint64_t first_ns,
        uint64_t last_ns, bool *unsure)
{
	return capmaps_find(((const struct load *)c)->maps, proc, addr, first_ns, last_ns, unsure);
}
