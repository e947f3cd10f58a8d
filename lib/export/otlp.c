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
#include <string.h>

enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY = 2 };

enum dictionary {
	MAPPING_TABLE = 1,
	LOCATION_TABLE,
	FUNCTION_TABLE,
	LINK_TABLE,
	STRING_TABLE,
	ATTRIBUTE_TABLE,
	STACK_TABLE,
	TABLES
};

enum values { WAITS, OFF_CPU, RUNNABLE, SAMPLES, CPU, VALUES };

static const struct {
	const char *type, *unit;
} value_types[VALUES] = { [WAITS] = { "waits", "count" },
	[OFF_CPU] = { "off_cpu", "nanoseconds" },
	[RUNNABLE] = { "runnable", "nanoseconds" },
	[SAMPLES] = { "samples", "count" },
	[CPU] = { "cpu", "nanoseconds" } };

/*
 * A dictionary has each thing once, and only what samples refer to: a table is a set of encoded messages,
 * which refer to one another by their numbers. Number 0 of each is the empty message: none.
 */
struct otlp {
	const struct profile *p;
	struct intern table[TABLES]; /* by enum dictionary */
	struct buf scratch[TABLES]; /* an element of each that is being encoded */
	uint32_t *mapping_at, *frame_at, *stack_at; /* the numbers of those that are in a table, or 0 */
	struct buf resource; /* the profiles */
	struct buf part; /* scratch: packed numbers */
	struct intern identities; /* of samples: process name, stack and attributes */
	struct profile_groups groups; /* by identity */
	uint32_t *order; /* groups, those of a service together */
	bool failed;
};

static uint32_t put(struct otlp *x, enum dictionary table, const void *p, size_t len)
{
	const uint32_t id = intern_put(&x->table[table], p, len);

	x->failed = x->failed || id == INTERN_NONE;
	return id == INTERN_NONE ? 0 : id;
}

/* What is encoded in the table's scratch. */
static uint32_t put_encoded(struct otlp *x, enum dictionary table)
{
	const struct buf *b = &x->scratch[table];

	x->failed = x->failed || b->failed;
	return b->failed ? 0 : put(x, table, b->p, b->len);
}

static struct buf *encode(struct otlp *x, enum dictionary table)
{
	buf_reset(&x->scratch[table]);
	return &x->scratch[table];
}

/* Fields that are 0 are left out: two forms of one message would be two things. */
static void put_number(struct buf *b, uint32_t field, uint64_t v)
{
	if (v)
		proto_u64(b, field, v);
}

static uint32_t word(struct otlp *x, const char *s)
{
	return put(x, STRING_TABLE, s, strlen(s));
}

static uint32_t string(struct otlp *x, profile_text text)
{
	size_t len;
	const char *s = profile_str(x->p, text, &len);

	return put(x, STRING_TABLE, s, len);
}

static uint32_t number_attribute(struct otlp *x, const char *key, uint64_t number)
{
	const uint32_t name = word(x, key);
	struct buf *b = encode(x, ATTRIBUTE_TABLE);
	size_t at;

	put_number(b, 1, name);
	at = proto_begin(b, 2);
	proto_u64(b, 3, number);
	proto_end(b, at);
	return put_encoded(x, ATTRIBUTE_TABLE);
}

static uint32_t text_attribute(struct otlp *x, const char *key, const char *s, size_t len)
{
	const uint32_t name = word(x, key);
	struct buf *b = encode(x, ATTRIBUTE_TABLE);
	size_t at;

	put_number(b, 1, name);
	at = proto_begin(b, 2);
	proto_str(b, 1, s, len);
	proto_end(b, at);
	return put_encoded(x, ATTRIBUTE_TABLE);
}

static uint32_t attribute(struct otlp *x, const char *key, profile_text value)
{
	size_t len;
	const char *s = profile_str(x->p, value, &len);

	return text_attribute(x, key, s, len);
}

/* A list of numbers, of which there is one. */
static void put_reference(struct buf *b, uint32_t field, uint32_t id)
{
	uint8_t bytes[5];
	size_t n = 0;

	for (; id > 0x7f; id >>= 7)
		bytes[n++] = (uint8_t)(id | 0x80);
	bytes[n++] = (uint8_t)id;
	proto_str(b, field, bytes, n);
}

static uint32_t mapping(struct otlp *x, uint32_t i)
{
	const struct profile_mapping *m = &x->p->mappings[i];
	uint32_t name, build_id;
	struct buf *b;

	if (x->mapping_at[i])
		return x->mapping_at[i];
	name = string(x, m->name);
	build_id = m->build_id ? attribute(x, "process.executable.build_id.gnu", m->build_id) : 0;
	b = encode(x, MAPPING_TABLE);
	put_number(b, 1, m->start);
	put_number(b, 2, m->end);
	put_number(b, 3, m->offset);
	put_number(b, 4, name);
	if (build_id)
		put_reference(b, 5, build_id);
	return x->mapping_at[i] = put_encoded(x, MAPPING_TABLE);
}

static uint32_t function(struct otlp *x, const struct profile_call *c)
{
	const uint32_t name = string(x, c->name), linkage = string(x, c->linkage), file = string(x, c->file);
	struct buf *b = encode(x, FUNCTION_TABLE);

	put_number(b, 1, name);
	put_number(b, 2, linkage);
	put_number(b, 3, file);
	return put_encoded(x, FUNCTION_TABLE);
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

static uint32_t location(struct otlp *x, uint32_t frame)
{
	const struct profile_frame *f = &x->p->frames[frame];
	const char *type = frame_type(x, f);
	struct buf *b = encode(x, LOCATION_TABLE);

	if (x->frame_at[frame])
		return x->frame_at[frame];
	if (f->mapping != PROFILE_NONE)
		put_number(b, 1, mapping(x, f->mapping));
	put_number(b, 2, profile_call_address(f));
	for (uint32_t k = 0; k < f->n; k++) {
		const struct profile_call *c = &x->p->calls[f->first + k];
		const uint32_t id = function(x, c);
		const size_t line = proto_begin(b, 3);

		put_number(b, 1, id);
		put_number(b, 2, c->line);
		put_number(b, 3, c->column);
		proto_end(b, line);
	}
	if (type)
		put_reference(b, 4, text_attribute(x, "profile.frame.type", type, strlen(type)));
	return x->frame_at[frame] = put_encoded(x, LOCATION_TABLE);
}

static uint32_t stack(struct otlp *x, uint32_t i)
{
	const struct profile_stack *s = &x->p->stacks[i];
	struct buf *b = encode(x, STACK_TABLE);

	if (x->stack_at[i])
		return x->stack_at[i];
	buf_reset(&x->part);
	for (uint32_t k = 0; k < s->n; k++)
		buf_uleb(&x->part, location(x, x->p->stacked[s->first + k]));
	x->failed = x->failed || x->part.failed;
	proto_str(b, 1, x->part.p, x->part.len);
	return x->stack_at[i] = put_encoded(x, STACK_TABLE);
}

static void put_dictionary(struct otlp *x, struct buf *b)
{
	for (enum dictionary t = MAPPING_TABLE; t < TABLES; t++)
		for (size_t i = 0; i < x->table[t].n; i++)
			proto_str(b, t, x->table[t].entries[i].text, x->table[t].entries[i].len);
}

/* Attributes of the resource are not in the dictionary. */
static void put_resource_attribute(struct otlp *x, const char *key, const char *s, size_t len)
{
	struct buf *b = &x->resource;
	size_t at, inner;

	if (!len)
		return;
	at = proto_begin(b, 1);
	proto_str(b, 1, key, strlen(key));
	inner = proto_begin(b, 2);
	proto_str(b, 1, s, len);
	proto_end(b, inner);
	proto_end(b, at);
}

static void put_resource_text(struct otlp *x, const char *key, profile_text value)
{
	size_t len;
	const char *s = profile_str(x->p, value, &len);

	put_resource_attribute(x, key, s, len);
}

static void put_resource(struct otlp *x, profile_text service)
{
	size_t at = proto_begin(&x->resource, 1);

	put_resource_text(x, "service.name", service);
	put_resource_text(x, "host.name", x->p->hostname);
	put_resource_text(x, "host.arch", x->p->machine);
	put_resource_attribute(x, "os.type", "linux", 5);
	put_resource_text(x, "os.version", x->p->release);
	proto_end(&x->resource, at);
}

static const struct profile_process *process_of(const struct profile *p, const struct profile_record *r)
{
	return &p->processes[p->threads[r->thread].process];
}

static void put_attributes(struct otlp *x, const struct profile_record *r, struct buf *b)
{
	const struct profile_process *p = process_of(x->p, r);
	const char *wait = r->preempted ? "preempted" : r->open ? "open" : r->initial ? "initial" : NULL;

	buf_uleb(b, number_attribute(x, "process.pid", p->pid));
	buf_uleb(b, attribute(x, "process.executable.name", p->comm));
	if (p->exe)
		buf_uleb(b, attribute(x, "process.executable.path", p->exe));
	buf_uleb(b, number_attribute(x, "thread.id", x->p->threads[r->thread].tid));
	buf_uleb(b, attribute(x, "thread.name", r->comm));
	if (r->state)
		buf_uleb(b, attribute(x, "stacktools.state", r->state));
	if (r->kind)
		buf_uleb(b, attribute(x, "stacktools.kind", r->kind));
	if (r->waker != PROFILE_NONE)
		buf_uleb(b, attribute(x, "stacktools.waker", x->p->wakers[r->waker].name));
	if (wait)
		buf_uleb(b, text_attribute(x, "stacktools.wait", wait, strlen(wait)));
}

/* --- samples --- */

/*
 * The encoded stack and attributes of a sample are its identity: group the records by it. Those that are
 * of a thread that ran are of other profiles, but may be of the same identity.
 */
static bool group(struct otlp *x)
{
	const struct profile *p = x->p;
	_cleanup_free_ uint32_t *group_of = calloc(p->n_records + 1, sizeof(*group_of));
	struct buf b = { 0 };

	for (size_t i = 0; i < p->n_records && group_of && !x->failed; i++) {
		const struct profile_record *r = &p->records[i];
		const uint32_t at = stack(x, r->stack);
		const uint8_t kind = r->is_sample;

		buf_reset(&b);
		buf_put(&b, &kind, 1);
		proto_u64(&b, 1, at);
		buf_reset(&x->part);
		put_attributes(x, r, &x->part);
		proto_str(&b, 2, x->part.p, x->part.len);
		group_of[i] =
			b.failed || x->part.failed ? INTERN_NONE : intern_put(&x->identities, b.p, b.len);
		x->failed = x->failed || group_of[i] == INTERN_NONE;
	}
	buf_free(&b);
	return group_of && !x->failed && profile_group(p, group_of, x->identities.n, &x->groups) == 0;
}

static uint64_t value_of(const struct profile_record *r, enum values v)
{
	return v == WAITS || v == SAMPLES ? r->count : v == RUNNABLE ? r->runnable_ns : r->total_ns;
}

static bool has_value(const struct profile_record *r, enum values v)
{
	return r->is_sample == (v == SAMPLES || v == CPU) && (v != RUNNABLE || r->is_split);
}

static const struct profile_record *first_of(const struct otlp *x, size_t group)
{
	return &x->p->records[x->groups.order[x->groups.first[group]]];
}

/* Of any record of the group: of some it may not be known what was runnable. */
static bool group_has_value(const struct otlp *x, size_t g, enum values v)
{
	for (size_t i = x->groups.first[g]; i < x->groups.first[g + 1]; i++)
		if (has_value(&x->p->records[x->groups.order[i]], v))
			return true;
	return false;
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

	proto_u64(&x->resource, 1, word(x, value_types[v].type));
	proto_u64(&x->resource, 2, word(x, value_types[v].unit));
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

/* Of the N groups at FIRST, if any has such values. */
static void put_profile(struct otlp *x, const uint32_t *first, size_t n, enum values v)
{
	const struct profile *p = x->p;
	const bool timed = is_timed(p, v);
	struct buf *b = &x->resource;
	size_t at = 0, sample, len;
	const char *identity;

	for (size_t i = 0; i < n && !x->failed && !b->failed; i++) {
		if (!group_has_value(x, first[i], v))
			continue;
		if (!at) {
			at = proto_begin(b, 2);
			put_type(x, 1, v);
		}
		sample = proto_begin(b, 2);
		identity = intern_text(&x->identities, first[i], &len);
		buf_put(b, identity + 1, len - 1);
		put_values(x, first[i], v, timed);
		proto_end(b, sample);
	}
	if (!at)
		return;
	proto_fixed64(b, 3, p->start_real_ns);
	proto_u64(b, 4, p->duration_ns);
	if (v == SAMPLES || v == CPU) {
		put_type(x, 5, CPU);
		proto_u64(b, 6, period_ns(p));
	}
	proto_end(b, at);
}

/* The profile that viewers show first is the first one. */
static void put_service(struct otlp *x, profile_text service, const uint32_t *first, size_t n)
{
	static const enum values order[] = { OFF_CPU, WAITS, RUNNABLE, CPU, SAMPLES };
	const size_t all = proto_begin(&x->resource, REQUEST_RESOURCE_PROFILES);
	size_t at, scope;

	put_resource(x, service);
	at = proto_begin(&x->resource, 2);
	scope = proto_begin(&x->resource, 1);
	proto_str(&x->resource, 1, "stackexport", 11);
	proto_str(&x->resource, 2, cli_version_string, strlen(cli_version_string));
	proto_end(&x->resource, scope);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		put_profile(x, first, n, order[i]);
	proto_end(&x->resource, at);
	proto_end(&x->resource, all);
}

/* --- services: the processes of one name --- */

static profile_text service_of(const struct otlp *x, uint32_t group)
{
	return process_of(x->p, first_of(x, group))->comm;
}

struct order {
	const struct otlp *x;
	const uint64_t *total_ns; /* by text */
};

static int by_service(const void *a, const void *b, void *ctx)
{
	const struct order *o = ctx;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const profile_text s = service_of(o->x, x), t = service_of(o->x, y);
	int c = CMP(o->total_ns[t], o->total_ns[s]);

	c = c ? c : CMP(s, t);
	return c ? c : CMP(x, y);
}

/* The one with the longest waits is first. */
static bool sort_services(struct otlp *x)
{
	const struct profile *p = x->p;
	_cleanup_free_ uint64_t *total_ns = calloc(p->texts.n + 1, sizeof(*total_ns));
	struct order o = { x, total_ns };

	x->order = calloc(x->groups.n + 1, sizeof(*x->order));
	if (!total_ns || !x->order)
		return false;
	for (size_t i = 0; i < p->n_records; i++) {
		uint64_t *total = &total_ns[process_of(p, &p->records[i])->comm];

		*total = add_saturating(*total, p->records[i].total_ns);
	}
	for (uint32_t g = 0; g < x->groups.n; g++)
		x->order[g] = g;
	qsort_r(x->order, x->groups.n, sizeof(*x->order), by_service, &o);
	return true;
}

static void put_services(struct otlp *x)
{
	const size_t n = x->groups.n;
	size_t from, to;

	if (!n)
		put_service(x, 0, x->order, 0);
	for (from = 0; from < n && !x->failed; from = to) {
		const profile_text service = service_of(x, x->order[from]);

		for (to = from + 1; to < n && service_of(x, x->order[to]) == service;)
			to++;
		put_service(x, service, x->order + from, to - from);
	}
}

/* --- all of it --- */

static bool begin(struct otlp *x)
{
	static const uint8_t link[] = { 0x0a, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 8, 0,
		0, 0, 0, 0, 0, 0, 0 };

	for (enum dictionary t = MAPPING_TABLE; t < TABLES; t++) {
		x->table[t].seed = x->p->texts.seed;
		put(x, t, t == LINK_TABLE ? link : (const uint8_t *)"", t == LINK_TABLE ? sizeof(link) : 0);
	}
	x->identities.seed = x->p->texts.seed;
	x->mapping_at = calloc(x->p->n_mappings + 1, sizeof(*x->mapping_at));
	x->frame_at = calloc(x->p->n_frames + 1, sizeof(*x->frame_at));
	x->stack_at = calloc(x->p->n_stacks + 1, sizeof(*x->stack_at));
	return x->mapping_at && x->frame_at && x->stack_at;
}

static void release(struct otlp *x)
{
	for (enum dictionary t = 0; t < TABLES; t++) {
		intern_free(&x->table[t]);
		buf_free(&x->scratch[t]);
	}
	intern_free(&x->identities);
	free(x->mapping_at);
	free(x->frame_at);
	free(x->stack_at);
	free(x->order);
	buf_free(&x->resource);
	buf_free(&x->part);
	profile_groups_free(&x->groups);
}

int export_otlp(struct profile *p, struct out *out, struct err *e)
{
	CLEANUP(release) struct otlp x = { .p = p };
	struct buf dictionary = { 0 };
	size_t at;

	if (!begin(&x) || !group(&x) || !sort_services(&x))
		return err_nomem(e, "the profiles");
	/* profiles add to the dictionary, which goes first: by its first byte a file is recognised */
	put_services(&x);
	at = proto_begin(&dictionary, REQUEST_DICTIONARY);
	put_dictionary(&x, &dictionary);
	proto_end(&dictionary, at);
	x.failed = x.failed || dictionary.failed || x.resource.failed || x.part.failed;
	if (!x.failed) {
		out_put(out, dictionary.p, dictionary.len);
		out_put(out, x.resource.p, x.resource.len);
	}
	buf_free(&dictionary);
	return x.failed ? err_nomem(e, "the profiles") : 0;
}
