/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Field numbers: proto/profile.proto of github.com/google/pprof. */
#include "base/text.h"
#include "export/export.h"
#include "export/proto.h"

#include <errno.h>
#include <inttypes.h>
#include <libdeflate.h>

/* Of the message Profile. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};

#define FASTEST 1 /* of gzip's levels: the next ones take twice as long for a tenth of the size */

struct pprof {
	struct profile *p;
	struct buf b; /* the profile */
	struct buf part; /* scratch: packed numbers */
	struct profile_groups groups; /* by identity */
	struct idmap functions; /* (name, linkage name, file) -> id - 1 */
	struct buf stacks; /* packed ids of all stacks' locations */
	size_t *stack_at; /* where each of them begins */
	uint32_t key_thread, key_tid, key_process, key_pid, key_state, key_kind, key_waker, key_wait, open,
		initial, preempted;
	bool failed;
};

static uint32_t string(struct pprof *x, const char *s)
{
	const uint32_t id = profile_put(x->p, s);

	x->failed = x->failed || id == INTERN_NONE;
	return id;
}

static void put_type(struct pprof *x, uint32_t field, const char *type, const char *unit)
{
	size_t at = proto_begin(&x->b, field);

	proto_u64(&x->b, 1, string(x, type));
	proto_u64(&x->b, 2, string(x, unit));
	proto_end(&x->b, at);
}

static void put_types(struct pprof *x)
{
	const struct profile *p = x->p;
	const bool waits = p->has_waits || !p->has_samples;
	uint64_t period = 1, total = 0;

	if (waits) {
		put_type(x, PROFILE_SAMPLE_TYPE, "waits", "count");
		put_type(x, PROFILE_SAMPLE_TYPE, "offcpu", "nanoseconds");
	}
	if (p->has_split)
		put_type(x, PROFILE_SAMPLE_TYPE, "runnable", "nanoseconds");
	if (p->has_samples) {
		put_type(x, PROFILE_SAMPLE_TYPE, "samples", "count");
		put_type(x, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
		for (size_t i = 0; i < p->n_records; i++)
			total = add_saturating(total, p->records[i].is_sample ? p->records[i].total_ns : 0);
		period = total / p->samples;
	}
	put_type(x, PROFILE_PERIOD_TYPE, p->has_samples ? "cpu" : "offcpu", "nanoseconds");
	proto_u64(&x->b, PROFILE_PERIOD, period);
	proto_u64(&x->b, PROFILE_DEFAULT_SAMPLE_TYPE, string(x, waits ? "offcpu" : "cpu"));
}

static void put_label(struct pprof *x, uint32_t key, profile_text text)
{
	size_t at = proto_begin(&x->b, 3);

	proto_u64(&x->b, 1, key);
	proto_u64(&x->b, 2, text);
	proto_end(&x->b, at);
}

static void put_number(struct pprof *x, uint32_t key, uint64_t number)
{
	size_t at = proto_begin(&x->b, 3);

	proto_u64(&x->b, 1, key);
	proto_u64(&x->b, 3, number);
	proto_end(&x->b, at);
}

static void put_labels(struct pprof *x, const struct profile_record *r)
{
	const struct profile_thread *t = &x->p->threads[r->thread];
	const struct profile_process *p = &x->p->processes[t->process];

	put_label(x, x->key_thread, r->comm);
	put_number(x, x->key_tid, t->tid);
	put_label(x, x->key_process, p->comm);
	put_number(x, x->key_pid, p->pid);
	if (r->state)
		put_label(x, x->key_state, r->state);
	if (r->kind)
		put_label(x, x->key_kind, r->kind);
	if (r->waker != PROFILE_NONE)
		put_label(x, x->key_waker, x->p->wakers[r->waker].name);
	if (r->open || r->initial || r->preempted)
		put_label(x, x->key_wait, r->preempted ? x->preempted : r->open ? x->open : x->initial);
}

/* Group G: records that differ in their times only. */
static void put_sample(struct pprof *x, size_t g)
{
	const struct profile *p = x->p;
	const struct profile_record *r = &p->records[x->groups.order[x->groups.first[g]]];
	const size_t from = x->stack_at[r->stack];
	uint64_t count = 0, total_ns = 0, runnable_ns = 0;
	size_t at = proto_begin(&x->b, PROFILE_SAMPLE);

	for (size_t i = x->groups.first[g]; i < x->groups.first[g + 1]; i++) {
		const struct profile_record *one = &p->records[x->groups.order[i]];

		count = add_saturating(count, one->count);
		total_ns = add_saturating(total_ns, one->total_ns);
		runnable_ns = add_saturating(runnable_ns, one->runnable_ns);
	}
	proto_str(&x->b, 1, x->stacks.p + from, x->stack_at[r->stack + 1] - from);
	buf_reset(&x->part);
	if (p->has_waits || !p->has_samples) {
		buf_uleb(&x->part, r->is_sample ? 0 : count);
		buf_uleb(&x->part, r->is_sample ? 0 : total_ns);
	}
	if (p->has_split)
		buf_uleb(&x->part, runnable_ns);
	if (p->has_samples) {
		buf_uleb(&x->part, r->is_sample ? count : 0);
		buf_uleb(&x->part, r->is_sample ? total_ns : 0);
	}
	proto_str(&x->b, 2, x->part.p, x->part.len);
	put_labels(x, r);
	proto_end(&x->b, at);
}

/* Ids of locations are indexes of frames, plus one. */
static void pack_stacks(struct pprof *x)
{
	const struct profile *p = x->p;

	for (size_t i = 0; i < p->n_stacks; i++) {
		x->stack_at[i] = x->stacks.len;
		for (uint32_t k = 0; k < p->stacks[i].n; k++)
			buf_uleb(&x->stacks, (uint64_t)p->stacked[p->stacks[i].first + k] + 1);
	}
	x->stack_at[p->n_stacks] = x->stacks.len;
}

static void put_mappings(struct pprof *x)
{
	for (size_t i = 0; i < x->p->n_mappings; i++) {
		const struct profile_mapping *m = &x->p->mappings[i];
		size_t at = proto_begin(&x->b, PROFILE_MAPPING);

		proto_u64(&x->b, 1, i + 1);
		proto_u64(&x->b, 2, m->start);
		proto_u64(&x->b, 3, m->end);
		proto_u64(&x->b, 4, m->offset);
		proto_u64(&x->b, 5, m->name);
		proto_u64(&x->b, 6, m->build_id);
		/* pprof would look for files of these names, of this machine, to name what has no name */
		proto_u64(&x->b, 7, true);
		proto_u64(&x->b, 8, m->has_lines);
		proto_u64(&x->b, 9, m->has_lines);
		proto_u64(&x->b, 10, m->has_inlined);
		proto_end(&x->b, at);
	}
}

static uint64_t function(struct pprof *x, const struct profile_call *c)
{
	bool added = false;
	uint32_t id = idmap_put(&x->functions, (uint64_t)c->name << 32 | c->linkage, c->file,
		(uint32_t)x->functions.n, &added);
	size_t at;

	x->failed = x->failed || id == UINT32_MAX;
	if (!added)
		return (uint64_t)id + 1;
	at = proto_begin(&x->b, PROFILE_FUNCTION);
	proto_u64(&x->b, 1, (uint64_t)id + 1);
	proto_u64(&x->b, 2, c->name);
	/* pprof takes a name that is the same here for one of C++, and drops what is in angle brackets */
	proto_u64(&x->b, 3, c->linkage != c->name ? c->linkage : 0);
	proto_u64(&x->b, 4, c->file);
	proto_end(&x->b, at);
	return (uint64_t)id + 1;
}

static void put_location(struct pprof *x, size_t i)
{
	const struct profile_frame *f = &x->p->frames[i];
	const struct profile_call *calls = &x->p->calls[f->first];
	size_t at, line;

	buf_reset(&x->part);
	/* a function that is new comes before the location */
	for (uint32_t k = 0; k < f->n; k++) {
		const uint64_t id = function(x, &calls[k]);

		line = proto_begin(&x->part, 4);
		proto_u64(&x->part, 1, id);
		proto_u64(&x->part, 2, calls[k].line);
		proto_u64(&x->part, 3, calls[k].column);
		proto_end(&x->part, line);
	}
	at = proto_begin(&x->b, PROFILE_LOCATION);
	proto_u64(&x->b, 1, (uint64_t)i + 1);
	if (f->mapping != PROFILE_NONE)
		proto_u64(&x->b, 2, (uint64_t)f->mapping + 1);
	proto_u64(&x->b, 3, profile_call_address(f));
	buf_put(&x->b, x->part.p, x->part.len);
	proto_end(&x->b, at);
	x->failed = x->failed || x->part.failed;
}

static void put_comment(struct pprof *x, const char *key, profile_text value)
{
	char text[512];
	size_t len;
	const char *s = profile_str(x->p, value, &len);

	snprintf(text, sizeof(text), "%s: %.*s", key, (int)MIN(len, (size_t)400), s);
	proto_u64(&x->b, PROFILE_COMMENT, string(x, text));
}

static void put_comments(struct pprof *x)
{
	char text[64];

	put_comment(x, "host", x->p->hostname);
	put_comment(x, "kernel", x->p->release);
	put_comment(x, "recorder", x->p->recorder);
	if (x->p->damage)
		put_comment(x, "incomplete", x->p->damage);
	if (!x->p->lost)
		return;
	snprintf(text, sizeof(text), "lost: %" PRIu64, x->p->lost);
	proto_u64(&x->b, PROFILE_COMMENT, string(x, text));
}

/* Last, because the rest adds to them. */
static void put_strings(struct pprof *x)
{
	const struct intern *t = &x->p->texts;

	for (size_t i = 0; i < t->n; i++)
		proto_str(&x->b, PROFILE_STRING_TABLE, t->entries[i].text, t->entries[i].len);
}

static void put_profile(struct pprof *x)
{
	const struct profile *p = x->p;

	x->key_thread = string(x, "thread");
	x->key_tid = string(x, "tid");
	x->key_process = string(x, "process");
	x->key_pid = string(x, "pid");
	x->key_state = string(x, "state");
	x->key_kind = string(x, "kind");
	x->key_waker = string(x, "waker");
	x->key_wait = string(x, "wait");
	x->open = string(x, "open");
	x->initial = string(x, "initial");
	x->preempted = string(x, "preempted");
	put_types(x);
	pack_stacks(x);
	put_mappings(x);
	for (size_t i = 0; i < p->n_frames; i++)
		put_location(x, i);
	for (size_t g = 0; g < x->groups.n && !x->b.failed && !x->stacks.failed; g++)
		put_sample(x, g);
	proto_u64(&x->b, PROFILE_TIME_NANOS, p->start_real_ns);
	proto_u64(&x->b, PROFILE_DURATION_NANOS, p->duration_ns);
	put_comments(x);
	put_strings(x);
	x->failed = x->failed || x->b.failed || x->stacks.failed || x->part.failed;
}

static int put_gzip(struct out *out, const struct buf *b, struct err *e)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(FASTEST);
	const size_t room = libdeflate_gzip_compress_bound(c, b->len);
	_cleanup_free_ uint8_t *bytes = c ? malloc(room) : NULL;
	size_t n = bytes ? libdeflate_gzip_compress(c, b->p, b->len, bytes, room) : 0;

	if (c)
		libdeflate_free_compressor(c);
	if (!n)
		return err_nomem(e, "the profile");
	out_put(out, bytes, n);
	return 0;
}

int export_pprof(struct profile *p, struct out *out, struct err *e)
{
	struct pprof x = { .p = p, .stack_at = calloc(p->n_stacks + 1, sizeof(*x.stack_at)) };
	int rc;

	x.failed = !x.stack_at || profile_by_identity(p, &x.groups) != 0;
	if (!x.failed)
		put_profile(&x);
	rc = x.failed ? err_nomem(e, "the profile") : put_gzip(out, &x.b, e);
	buf_free(&x.b);
	buf_free(&x.part);
	buf_free(&x.stacks);
	profile_groups_free(&x.groups);
	idmap_free(&x.functions);
	free(x.stack_at);
	return rc;
}
