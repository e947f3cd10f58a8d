/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Field numbers: opentelemetry/proto/profiles/v1development of github.com/open-telemetry/opentelemetry-proto,
 * version 1.11.0; in 1.9.0 members of Sample have other numbers. The signal is in development: an older or
 * newer receiver may read something else.
 */
#include "base/cli.h"
#include "export/export.h"
#include "export/proto.h"

#include <errno.h>

enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY = 2 };

enum dictionary {
	MAPPING_TABLE = 1,
	LOCATION_TABLE,
	FUNCTION_TABLE,
	LINK_TABLE,
	STRING_TABLE,
	ATTRIBUTE_TABLE,
	STACK_TABLE
};

enum values { WAITS, OFF_CPU, RUNNABLE, SAMPLES, CPU, VALUES };

static const struct {
	const char *type, *unit;
} value_types[VALUES] = { [WAITS] = { "waits", "count" },
	[OFF_CPU] = { "off_cpu", "nanoseconds" },
	[RUNNABLE] = { "runnable", "nanoseconds" },
	[SAMPLES] = { "samples", "count" },
	[CPU] = { "cpu", "nanoseconds" } };

struct otlp {
	struct profile *p;
	struct buf dictionary, functions, attributes; /* the tables as they are filled */
	struct buf resource; /* the profiles */
	struct buf part; /* scratch: packed numbers */
	struct profile_groups groups; /* by identity */
	struct idmap function_ids; /* (name, linkage name, file) -> index - 1 */
	struct idmap attribute_ids; /* (key, text or number) -> index - 1 */
	bool failed;
};

static profile_text text(struct otlp *x, const char *s)
{
	const profile_text id = profile_put(x->p, s);

	x->failed = x->failed || id == INTERN_NONE;
	return id == INTERN_NONE ? 0 : id;
}

/* The index of an attribute with a text, or with a NUMBER if it is one. */
static uint32_t attribute(
	struct otlp *x, const char *key, profile_text value, bool is_number, uint64_t number)
{
	const profile_text name = text(x, key);
	bool added = false;
	const uint32_t id = idmap_put(&x->attribute_ids, (uint64_t)name << 1 | is_number,
		is_number ? number : value, (uint32_t)x->attribute_ids.n, &added);
	struct buf *b = &x->attributes;
	size_t at, inner, len;
	const char *s;

	x->failed = x->failed || id == UINT32_MAX;
	if (!added)
		return id + 1;
	at = proto_begin(b, ATTRIBUTE_TABLE);
	proto_u64(b, 1, name);
	inner = proto_begin(b, 2);
	if (is_number) {
		proto_u64(b, 3, number);
	} else {
		s = profile_str(x->p, value, &len);
		proto_str(b, 1, s, len);
	}
	proto_end(b, inner);
	proto_end(b, at);
	return id + 1;
}

static uint32_t text_attribute(struct otlp *x, const char *key, profile_text value)
{
	return attribute(x, key, value, false, 0);
}

/* A dictionary's first element of each table is empty, so that index 0 is none. */
static void put_empty(struct otlp *x, enum dictionary table)
{
	proto_str(&x->dictionary, table, "", 0);
}

static void put_mappings(struct otlp *x)
{
	struct buf *b = &x->dictionary;

	put_empty(x, MAPPING_TABLE);
	for (size_t i = 0; i < x->p->n_mappings; i++) {
		const struct profile_mapping *m = &x->p->mappings[i];
		size_t at = proto_begin(b, MAPPING_TABLE);

		proto_u64(b, 1, m->start);
		proto_u64(b, 2, m->end);
		proto_u64(b, 3, m->offset);
		proto_u64(b, 4, m->name);
		if (m->build_id)
			proto_u64(b, 5, text_attribute(x, "process.executable.build_id.gnu", m->build_id));
		proto_end(b, at);
	}
}

static uint64_t function(struct otlp *x, const struct profile_call *c)
{
	struct buf *b = &x->functions;
	bool added = false;
	const uint32_t id = idmap_put(&x->function_ids, (uint64_t)c->name << 32 | c->linkage, c->file,
		(uint32_t)x->function_ids.n, &added);
	size_t at;

	x->failed = x->failed || id == UINT32_MAX;
	if (!added)
		return (uint64_t)id + 1;
	at = proto_begin(b, FUNCTION_TABLE);
	proto_u64(b, 1, c->name);
	proto_u64(b, 2, c->linkage);
	proto_u64(b, 3, c->file);
	proto_end(b, at);
	return (uint64_t)id + 1;
}

/* What the semantic conventions call the code of F; NULL for what stands for missing frames. */
static const char *frame_type(const struct otlp *x, const struct profile_frame *f)
{
	static const char *const types[][2] = { { "[python]", "cpython" }, { "[java]", "jvm" },
		{ "[v8]", "v8js" }, { "[php]", "php" }, { "[perl]", "perl" }, { "[ruby]", "ruby" } };
	const char *name;
	size_t len;

	if (f->kernel || f->address || f->mapping == PROFILE_NONE)
		return f->kernel ? "kernel" : f->address ? "native" : NULL;
	name = profile_str(x->p, x->p->mappings[f->mapping].name, &len);
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (len == strlen(types[i][0]) && memcmp(name, types[i][0], len) == 0)
			return types[i][1];
	return NULL;
}

static void put_location(struct otlp *x, const struct profile_frame *f)
{
	struct buf *b = &x->dictionary;
	const char *type = frame_type(x, f);
	size_t at = proto_begin(b, LOCATION_TABLE);

	if (f->mapping != PROFILE_NONE)
		proto_u64(b, 1, (uint64_t)f->mapping + 1);
	proto_u64(b, 2, profile_call_address(f));
	for (uint32_t k = 0; k < f->n; k++) {
		const struct profile_call *c = &x->p->calls[f->first + k];
		size_t line = proto_begin(b, 3);

		proto_u64(b, 1, function(x, c));
		proto_u64(b, 2, c->line);
		proto_u64(b, 3, c->column);
		proto_end(b, line);
	}
	if (type)
		proto_u64(b, 4, text_attribute(x, "profile.frame.type", text(x, type)));
	proto_end(b, at);
}

static void put_stacks(struct otlp *x)
{
	const struct profile *p = x->p;
	size_t at;

	put_empty(x, STACK_TABLE);
	for (size_t i = 0; i < p->n_stacks; i++) {
		buf_reset(&x->part);
		for (uint32_t k = 0; k < p->stacks[i].n; k++)
			buf_uleb(&x->part, (uint64_t)p->stacked[p->stacks[i].first + k] + 1);
		x->failed = x->failed || x->part.failed;
		at = proto_begin(&x->dictionary, STACK_TABLE);
		proto_str(&x->dictionary, 1, x->part.p, x->part.len);
		proto_end(&x->dictionary, at);
	}
}

static void put_dictionary(struct otlp *x)
{
	static const uint8_t link[] = { 0x0a, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 8, 0,
		0, 0, 0, 0, 0, 0, 0 };
	struct buf *b = &x->dictionary;

	put_mappings(x);
	put_empty(x, LOCATION_TABLE);
	for (size_t i = 0; i < x->p->n_frames; i++)
		put_location(x, &x->p->frames[i]);
	put_empty(x, FUNCTION_TABLE);
	buf_put(b, x->functions.p, x->functions.len);
	proto_str(b, LINK_TABLE, link, sizeof(link));
	put_stacks(x);
	put_empty(x, ATTRIBUTE_TABLE);
	buf_put(b, x->attributes.p, x->attributes.len);
	for (size_t i = 0; i < x->p->texts.n; i++)
		proto_str(b, STRING_TABLE, x->p->texts.entries[i].text, x->p->texts.entries[i].len);
}

/* Attributes of the resource are not in the dictionary. */
static void put_resource_attribute(struct otlp *x, const char *key, profile_text value)
{
	struct buf *b = &x->resource;
	size_t len, at, inner;
	const char *s = profile_str(x->p, value, &len);

	if (!len)
		return;
	at = proto_begin(b, 1);
	proto_str(b, 1, key, strlen(key));
	inner = proto_begin(b, 2);
	proto_str(b, 1, s, len);
	proto_end(b, inner);
	proto_end(b, at);
}

static void put_resource(struct otlp *x)
{
	size_t at = proto_begin(&x->resource, 1);

	put_resource_attribute(x, "host.name", x->p->hostname);
	put_resource_attribute(x, "host.arch", x->p->machine);
	put_resource_attribute(x, "os.type", text(x, "linux"));
	put_resource_attribute(x, "os.version", x->p->release);
	proto_end(&x->resource, at);
}

static uint64_t value_of(const struct profile_record *r, enum values v)
{
	return v == WAITS || v == SAMPLES ? r->count : v == RUNNABLE ? r->runnable_ns : r->total_ns;
}

static bool has_value(const struct profile_record *r, enum values v)
{
	return r->is_sample == (v == SAMPLES || v == CPU) && (v != RUNNABLE || r->is_split);
}

static void put_attributes(struct otlp *x, const struct profile_record *r)
{
	const struct profile_thread *t = &x->p->threads[r->thread];
	const struct profile_process *p = &x->p->processes[t->process];
	struct buf *b = &x->part;

	buf_reset(b);
	buf_uleb(b, attribute(x, "process.pid", 0, true, p->pid));
	buf_uleb(b, text_attribute(x, "process.executable.name", p->comm));
	if (p->exe)
		buf_uleb(b, text_attribute(x, "process.executable.path", p->exe));
	buf_uleb(b, attribute(x, "thread.id", 0, true, t->tid));
	buf_uleb(b, text_attribute(x, "thread.name", r->comm));
	if (r->state)
		buf_uleb(b, text_attribute(x, "stacktools.state", r->state));
	if (r->kind)
		buf_uleb(b, text_attribute(x, "stacktools.kind", r->kind));
	if (r->waker != PROFILE_NONE)
		buf_uleb(b, text_attribute(x, "stacktools.waker", x->p->wakers[r->waker].name));
	if (r->open || r->initial || r->preempted)
		buf_uleb(b, text_attribute(x, "stacktools.wait",
				    text(x, r->preempted ? "preempted"
					    : r->open    ? "open"
							 : "initial")));
	x->failed = x->failed || b->failed;
	proto_str(&x->resource, 2, b->p, b->len);
}

/* The sum of group G, or each wait with its time. */
static void put_values(struct otlp *x, size_t g, enum values v, bool timed)
{
	const struct profile *p = x->p;
	uint64_t sum = 0;

	buf_reset(&x->part);
	for (size_t i = x->groups.first[g]; i < x->groups.first[g + 1]; i++) {
		const uint64_t value = value_of(&p->records[x->groups.order[i]], v);

		sum = add_saturating(sum, value);
		if (timed)
			buf_uleb(&x->part, value);
	}
	if (!timed)
		buf_uleb(&x->part, sum);
	proto_str(&x->resource, 4, x->part.p, x->part.len);
	buf_reset(&x->part);
	for (size_t i = x->groups.first[g]; timed && i < x->groups.first[g + 1]; i++)
		buf_fixed(&x->part,
			p->records[x->groups.order[i]].first_ns - p->start_mono_ns + p->start_real_ns, 8);
	if (timed)
		proto_str(&x->resource, 5, x->part.p, x->part.len);
	x->failed = x->failed || x->part.failed;
}

/* Whether each of the records with V has a time of its own: all samples of a profile are to be alike. */
static bool is_timed(const struct profile *p, enum values v)
{
	for (size_t i = 0; i < p->n_records; i++)
		if (has_value(&p->records[i], v) && p->records[i].count != 1)
			return false;
	return true;
}

static void put_type(struct otlp *x, uint32_t field, enum values v)
{
	size_t at = proto_begin(&x->resource, field);

	proto_u64(&x->resource, 1, text(x, value_types[v].type));
	proto_u64(&x->resource, 2, text(x, value_types[v].unit));
	proto_end(&x->resource, at);
}

/* The average period of the clock that samples were taken by. */
static uint64_t period_ns(const struct profile *p)
{
	uint64_t total = 0;

	for (size_t i = 0; i < p->n_records; i++)
		total = add_saturating(total, p->records[i].is_sample ? p->records[i].total_ns : 0);
	return p->samples ? total / p->samples : 0;
}

static void put_profile(struct otlp *x, enum values v)
{
	const struct profile *p = x->p;
	const bool timed = is_timed(p, v);
	struct buf *b = &x->resource;
	size_t at = proto_begin(b, 2), sample;

	put_type(x, 1, v);
	for (size_t g = 0; g < x->groups.n && !x->failed && !b->failed; g++) {
		const struct profile_record *r = &p->records[x->groups.order[x->groups.first[g]]];

		if (!has_value(r, v))
			continue;
		sample = proto_begin(b, 2);
		proto_u64(b, 1, (uint64_t)r->stack + 1);
		put_attributes(x, r);
		put_values(x, g, v, timed);
		proto_end(b, sample);
	}
	proto_fixed64(b, 3, p->start_real_ns);
	proto_u64(b, 4, p->duration_ns);
	if (v == SAMPLES || v == CPU) {
		put_type(x, 5, CPU);
		proto_u64(b, 6, period_ns(p));
	}
	proto_end(b, at);
}

/* The profile that viewers show first is the first one. */
static void put_profiles(struct otlp *x)
{
	static const enum values order[] = { OFF_CPU, WAITS, RUNNABLE, CPU, SAMPLES };
	const struct profile *p = x->p;
	size_t at, scope;

	put_resource(x);
	at = proto_begin(&x->resource, 2);
	scope = proto_begin(&x->resource, 1);
	proto_str(&x->resource, 1, "stackexport", 11);
	proto_str(&x->resource, 2, cli_version_string, strlen(cli_version_string));
	proto_end(&x->resource, scope);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		const enum values v = order[i];

		if (v == RUNNABLE ? p->has_split : v == CPU || v == SAMPLES ? p->has_samples : p->has_waits)
			put_profile(x, v);
	}
	proto_end(&x->resource, at);
}

static void put_part(struct otlp *x, struct out *out, uint32_t field, const struct buf *b)
{
	buf_reset(&x->part);
	buf_uleb(&x->part, (uint64_t)field << 3 | 2);
	buf_uleb(&x->part, b->len);
	x->failed = x->failed || x->part.failed || b->failed;
	if (x->failed)
		return;
	out_put(out, x->part.p, x->part.len);
	out_put(out, b->p, b->len);
}

int export_otlp(struct profile *p, struct out *out, struct err *e)
{
	struct otlp x = { .p = p };

	x.failed = profile_by_identity(p, &x.groups) != 0;
	if (!x.failed) {
		/* profiles add to the dictionary, which goes first: by its first byte a file is recognised */
		put_profiles(&x);
		put_dictionary(&x);
		x.failed = x.failed || x.functions.failed || x.attributes.failed || x.resource.failed;
		put_part(&x, out, REQUEST_DICTIONARY, &x.dictionary);
		put_part(&x, out, REQUEST_RESOURCE_PROFILES, &x.resource);
	}
	buf_free(&x.dictionary);
	buf_free(&x.functions);
	buf_free(&x.attributes);
	buf_free(&x.resource);
	buf_free(&x.part);
	profile_groups_free(&x.groups);
	idmap_free(&x.function_ids);
	idmap_free(&x.attribute_ids);
	return x.failed ? err_nomem(e, "the profiles") : 0;
}
