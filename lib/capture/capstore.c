/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capstore.h"
#include "base/search.h"
#include "capture/capcodec.h"

#include <errno.h>
#include <string.h>

static const char malformed[] = "a malformed record";
static const char no_memory[] = ""; /* capnames' too */

/* Room for N in an array that has its room in the field of the same name. */
#define ROOM(s, array, count) (base_grow(&(s)->array, &(s)->room.array, (count), sizeof(*(s)->array)) == 0)

/*
 * Each of these decodes a record into the place behind the last one and
 * checks what it refers to; it counts if NULL is returned, which is no
 * complaint.
 */
static const char *take_host(struct capstore *s, struct rd *r)
{
	if (s->has_host)
		return "a second host record";
	s->has_host = true;
	return capcodec_get_host(r, &s->host) ? NULL : malformed;
}

static const char *take_option(struct capstore *s, struct rd *r)
{
	if (!ROOM(s, options, s->n.options + 1))
		return no_memory;
	return capcodec_get_option(r, &s->options[s->n.options++]) ? NULL : malformed;
}

static const char *take_file(struct capstore *s, struct rd *r)
{
	if (!ROOM(s, files, s->n.files + 1))
		return no_memory;
	if (!capcodec_get_file(r, &s->files[s->n.files]))
		return malformed;
	s->n.files++;
	return s->files[s->n.files - 1].id == s->n.files - 1 ? NULL : "a file id out of order";
}

static const char *take_proc(struct capstore *s, struct rd *r)
{
	if (!ROOM(s, procs, s->n.procs + 1))
		return no_memory;
	if (!capcodec_get_proc(r, &s->procs[s->n.procs]))
		return malformed;
	s->n.procs++;
	return s->procs[s->n.procs - 1].id == s->n.procs - 1 ? NULL : "a process id out of order";
}

static const char *take_thread(struct capstore *s, struct rd *r)
{
	if (!ROOM(s, threads, s->n.threads + 1))
		return no_memory;
	if (!capcodec_get_thread(r, &s->threads[s->n.threads]))
		return malformed;
	return s->threads[s->n.threads++].proc < s->n.procs ? NULL
							    : "a thread of a process that is not there";
}

static const char *take_map(struct capstore *s, struct rd *r)
{
	const struct cap_map *m;

	if (!ROOM(s, maps, s->n.maps + 1))
		return no_memory;
	if (!capcodec_get_map(r, &s->maps[s->n.maps]))
		return malformed;
	m = &s->maps[s->n.maps++];
	if (m->proc >= s->n.procs)
		return "a mapping of a process that is not there";
	return m->file == CAP_NONE || m->file < s->n.files ? NULL : "a mapping of a file that is not there";
}

static const char *take_image(struct capstore *s, struct rd *r)
{
	if (!ROOM(s, images, s->n.images + 1))
		return no_memory;
	if (!capcodec_get_image(r, &s->images[s->n.images]))
		return malformed;
	return s->images[s->n.images++].file < s->n.files ? NULL : "an image of a file that is not there";
}

static const char *take_ksym(struct capstore *s, struct rd *r)
{
	if (!ROOM(s, ksyms, s->n.ksyms + 1))
		return no_memory;
	return capcodec_get_ksym(r, &s->ksyms[s->n.ksyms++]) ? NULL : malformed;
}

static const char *take_stack(struct capstore *s, struct rd *r)
{
	struct cap_stack *k;

	if (!ROOM(s, stacks, s->n.stacks + 1) || !ROOM(s, kinds, s->n.stacks + 1))
		return no_memory;
	k = &s->stacks[s->n.stacks];
	if (!capcodec_get_stack(r, k))
		return malformed;
	s->kinds[s->n.stacks] = k->kind;
	if (k->id != s->n.stacks++)
		return "a stack id out of order";
	if (!ROOM(s, frames, s->n.frames + k->len))
		return no_memory;
	s->n.frames += k->len;
	if (!capcodec_get_frames(r, s->frames + s->n.frames - k->len, k->len))
		return malformed;
	if (!capcodec_get_n_exact(r, k))
		return malformed;
	if (!ROOM(s, exact, s->n.exact + k->n_exact))
		return no_memory;
	s->n.exact += k->n_exact;
	return capcodec_get_exact(r, s->exact + s->n.exact - k->n_exact, k) ? NULL : malformed;
}

static bool is_stack(const struct capstore *s, uint32_t id, enum cap_stack_kind kind)
{
	return id < s->n.stacks && s->kinds[id] == kind;
}

static const char *take_sample(struct capstore *s, struct rd *r, struct capcodec_state *state)
{
	const struct cap_sample *k;

	if (!ROOM(s, pending, s->n.pending + 1))
		return no_memory;
	if (!capcodec_get_sample(r, &s->pending[s->n.pending], state))
		return malformed;
	k = &s->pending[s->n.pending++];
	if (k->proc >= s->n.procs)
		return "a sample of a process that is not there";
	if (!is_stack(s, k->kstack, CAP_STACK_KERNEL) || !is_stack(s, k->ustack, CAP_STACK_USER))
		return "a sample with a stack that is not there";
	return NULL;
}

static const char *take_counter(struct capstore *s, struct rd *r)
{
	if (!ROOM(s, counters, s->n.counters + 1))
		return no_memory;
	return capcodec_get_counter(r, &s->counters[s->n.counters++]) ? NULL : malformed;
}

static const char *take_flush(struct capstore *s, struct rd *r)
{
	struct cap_flush f = { 0 };
	bool fine = capcodec_get_flush(r, &f);

	s->last_flush_ns = f.time_ns;
	return fine ? NULL : malformed;
}

static const char *take_trailer(struct capstore *s, struct rd *r)
{
	s->has_trailer = true;
	return capcodec_get_trailer(r, &s->trailer) ? NULL : malformed;
}

static const char *take_record(
	struct capstore *s, unsigned int type, struct rd *r, struct capcodec_state *state)
{
	switch (type) {
	case CAPCODEC_HOST:
		return take_host(s, r);
	case CAPCODEC_OPTION:
		return take_option(s, r);
	case CAPCODEC_FILE:
		return take_file(s, r);
	case CAPCODEC_PROC:
		return take_proc(s, r);
	case CAPCODEC_THREAD:
		return take_thread(s, r);
	case CAPCODEC_MAP:
		return take_map(s, r);
	case CAPCODEC_IMAGE:
		return take_image(s, r);
	case CAPCODEC_KSYM:
		return take_ksym(s, r);
	case CAPCODEC_STACK:
		return take_stack(s, r);
	case CAPCODEC_SAMPLE:
		return take_sample(s, r, state);
	case CAPCODEC_COUNTER:
		return take_counter(s, r);
	case CAPCODEC_FLUSH:
		return take_flush(s, r);
	case CAPCODEC_TRAILER:
		return take_trailer(s, r);
	case CAPCODEC_JIT:
		return capnames_take_jit(&s->names, r, s->n.procs);
	case CAPCODEC_NAME:
		return capnames_take_name(&s->names, r, s->n.files);
	case CAPCODEC_STRING:
		return capnames_take_string(&s->names, r);
	default:
		return "a record of an unknown type";
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

/* The slot of K's key, or the free one where it belongs. */
static uint32_t *find_slot(const struct capstore *s, const struct cap_sample *k)
{
	size_t at = hash_sample(k) & (s->n.slots - 1);

	while (s->slots[at] && !same_key(&s->samples[s->slots[at] - 1], k))
		at = (at + 1) & (s->n.slots - 1);
	return &s->slots[at];
}

/* The table is at most half full with N samples. */
static bool room_in_slots(struct capstore *s, size_t n)
{
	size_t want = s->n.slots ? s->n.slots : 64;
	uint32_t *bigger;

	while (want / 2 < n)
		want *= 2;
	if (want == s->n.slots)
		return true;
	bigger = n < UINT32_MAX ? calloc(want, sizeof(*bigger)) : NULL;
	if (!bigger)
		return false;
	free(s->slots);
	s->slots = bigger;
	s->n.slots = want;
	for (size_t i = 0; i < s->n.samples; i++)
		*find_slot(s, &s->samples[i]) = (uint32_t)i + 1;
	return true;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* There is room for another sample. */
static void merge_sample(struct capstore *s, const struct cap_sample *k)
{
	uint32_t *slot = find_slot(s, k);
	struct cap_sample *into;

	if (!*slot) {
		s->samples[s->n.samples++] = *k;
		*slot = (uint32_t)s->n.samples;
		return;
	}
	into = &s->samples[*slot - 1];
	into->total_ns = add_saturating(into->total_ns, k->total_ns);
	into->count = add_saturating(into->count, k->count);
	into->max_ns = MAX(into->max_ns, k->max_ns);
	into->first_ns = MIN(into->first_ns, k->first_ns);
	into->last_ns = MAX(into->last_ns, k->last_ns);
}

/*
 * The table is larger than a cache, so what a sample will touch is fetched
 * while those before it are merged: first its slot, then what the slot names.
 */
static void fetch_ahead(const struct capstore *s, size_t i)
{
	enum { SLOT_AHEAD = 16, SAMPLE_AHEAD = 8 };
	uint32_t slot;

	if (i + SLOT_AHEAD >= s->n.pending)
		return;
	__builtin_prefetch(&s->slots[hash_sample(&s->pending[i + SLOT_AHEAD]) & (s->n.slots - 1)]);
	slot = s->slots[hash_sample(&s->pending[i + SAMPLE_AHEAD]) & (s->n.slots - 1)];
	if (slot)
		__builtin_prefetch(&s->samples[slot - 1]);
}

static bool merge_pending(struct capstore *s)
{
	size_t most = s->n.samples + s->n.pending;

	if (!s->n.pending)
		return true;
	if (!room_in_slots(s, most) || !ROOM(s, samples, most))
		return false;
	for (size_t i = 0; i < s->n.pending; i++) {
		fetch_ahead(s, i);
		merge_sample(s, &s->pending[i]);
	}
	return true;
}

/* --- a block --- */

/* What a block changes besides the arrays, whose counts are in n. */
struct before {
	struct capstore_counts n;
	struct capnames_counts names;
	struct cap_host host;
	struct cap_trailer trailer;
	uint64_t last_flush_ns;
	bool has_host, has_trailer;
};

static void put_back(struct capstore *s, const struct before *b)
{
	s->n = b->n;
	s->names.n = b->names;
	s->host = b->host;
	s->trailer = b->trailer;
	s->last_flush_ns = b->last_flush_ns;
	s->has_host = b->has_host;
	s->has_trailer = b->has_trailer;
}

int capstore_take(struct capstore *s, const struct capblock *b, const uint8_t *payload, const char **wrong)
{
	const struct before before = { s->n, s->names.n, s->host, s->trailer, s->last_flush_ns, s->has_host,
		s->has_trailer };
	struct rd r = rd_init(payload, b->len), record;
	struct capcodec_state state = { 0 };
	const char *complaint = NULL;

	s->n.pending = 0;
	while (!complaint && capcodec_next(&r, &record))
		complaint = take_record(s, b->type, &record, &state);
	if (!complaint && r.bad)
		complaint = "a record that ends behind its block";
	if (complaint) {
		put_back(s, &before);
		*wrong = complaint;
		return !*complaint ? -ENOMEM : -EBADMSG;
	}
	return merge_pending(s) ? 0 : -ENOMEM;
}

/* --- after the last block --- */

static int thread_cmp(const void *a, const void *b)
{
	const struct cap_thread *x = a, *y = b;

	return x->proc != y->proc ? CMP(x->proc, y->proc) : CMP(x->tid, y->tid);
}

static int counter_cmp(const void *a, const void *b)
{
	const struct cap_counter *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int ksym_cmp(const void *a, const void *b)
{
	const struct cap_ksym *x = a, *y = b;

	return CMP(x->start, y->start);
}

static void point_stacks(struct capstore *s)
{
	size_t frame = 0, exact = 0;

	for (size_t i = 0; i < s->n.stacks; i++) {
		s->stacks[i].frames = s->frames ? s->frames + frame : NULL;
		s->stacks[i].exact = s->exact ? s->exact + exact : NULL;
		frame += s->stacks[i].len;
		exact += s->stacks[i].n_exact;
	}
}

int capstore_settle(struct capstore *s)
{
	point_stacks(s);
	if (sortlast(&s->threads, &s->n.threads, sizeof(*s->threads), thread_cmp) != 0 ||
		sortlast(&s->counters, &s->n.counters, sizeof(*s->counters), counter_cmp) != 0 ||
		sortlast(&s->ksyms, &s->n.ksyms, sizeof(*s->ksyms), ksym_cmp) != 0 ||
		capnames_settle(&s->names) != 0)
		return -ENOMEM;
	for (size_t i = 1; i < s->n.ksyms; i++)
		s->ksyms[i - 1].end = MIN(s->ksyms[i - 1].end, s->ksyms[i].start);
	return 0;
}

void capstore_init(struct capstore *s)
{
	*s = (struct capstore){ .host = { "", "", "", "", "", "", "", .stext = 0 },
		.trailer = { .why = "" } };
}

void capstore_free(struct capstore *s)
{
	free(s->options);
	free(s->procs);
	free(s->threads);
	free(s->files);
	free(s->maps);
	free(s->images);
	free(s->ksyms);
	free(s->stacks);
	free(s->kinds);
	free(s->samples);
	free(s->counters);
	free(s->frames);
	free(s->exact);
	free(s->pending);
	free(s->slots);
	capnames_free(&s->names);
}
