/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The format: docs-developer/CHANGELOG-formats.md and src/types/profile.ts of
 * github.com/firefox-devtools/profiler. The profiler reads every version up to its own, so this writes the
 * oldest one that has shared tables and what they need.
 */
#include "base/cli.h"
#include "base/json.h"
#include "export/export.h"

#include <errno.h>
#include <inttypes.h>

#define PROCESSED_VERSION 61
#define GECKO_VERSION 31
#define MILLISECOND UINT64_C(1000000)
#define NO_PREFIX UINT32_MAX

enum category { OTHER, USER, KERNEL, SCRIPT };

/* A row of the frame table. */
struct row {
	uint32_t frame; /* of the profile */
	uint32_t depth; /* of inlining: 0 is the function that others are inlined into */
	uint32_t function;
};

struct firefox {
	struct profile *p;
	struct out *out;
	struct buf text; /* scratch */
	struct profile_groups groups;
	struct row *rows; /* by call */
	struct idmap functions; /* (name, source file, resource + 1) -> number */
	struct idmap sources; /* text -> number */
	struct idmap nodes; /* (prefix, row) -> number in the stack table */
	uint32_t *leaves; /* by stack: its node */
	struct idmap resources; /* (name, build ID) of mappings: libraries, and where else code was */
	uint32_t *resource_of; /* by mapping */
	uint32_t *libs; /* by resource: number of the library, PROFILE_NONE for none */
	profile_text wait;
	bool failed;
};

static void put_text(struct json *j, const char *key, struct firefox *x, profile_text text)
{
	json_str(j, key, profile_cstr(x->p, text, &x->text));
	x->failed = x->failed || x->text.failed;
}

/* Exact: milliseconds with all nanoseconds. */
static void put_ms(struct json *j, const char *key, uint64_t ns)
{
	char digits[32], *end = digits + sizeof(digits), *p = end;

	for (int i = 0; i < 7 || ns; i++, ns /= 10) {
		if (i == 6)
			*--p = '.';
		*--p = (char)('0' + ns % 10);
	}
	json_number(j, key, p, (size_t)(end - p));
}

static uint64_t since_start(const struct firefox *x, uint64_t time_ns)
{
	return time_ns > x->p->start_mono_ns ? time_ns - x->p->start_mono_ns : 0;
}

static enum category category_of(const struct profile_frame *f)
{
	if (f->kernel)
		return KERNEL;
	if (!f->address)
		return f->mapping != PROFILE_NONE ? SCRIPT : OTHER;
	return USER;
}

static uint32_t put_in(struct firefox *x, struct idmap *m, uint64_t hi, uint64_t lo)
{
	const uint32_t id = idmap_put(m, hi, lo, (uint32_t)m->n, NULL);

	x->failed = x->failed || id == UINT32_MAX;
	return id == UINT32_MAX ? 0 : id;
}

/* A file has a mapping in each process, and perhaps several. */
static void find_resources(struct firefox *x)
{
	const struct profile *p = x->p;
	uint32_t n_libs = 0;

	for (size_t i = 0; i < p->n_mappings; i++) {
		const struct profile_mapping *m = &p->mappings[i];
		const size_t before = x->resources.n;
		const uint32_t resource = put_in(x, &x->resources, m->name, m->build_id);

		x->resource_of[i] = resource;
		if (x->resources.n != before)
			x->libs[resource] = m->file != PROFILE_NONE ? n_libs++ : PROFILE_NONE;
	}
}

static void make_rows(struct firefox *x)
{
	const struct profile *p = x->p;

	for (size_t i = 0; i < p->n_frames; i++) {
		const struct profile_frame *f = &p->frames[i];

		for (uint32_t k = 0; k < f->n; k++) {
			const struct profile_call *c = &p->calls[f->first + k];
			const uint64_t resource =
				f->mapping != PROFILE_NONE ? (uint64_t)x->resource_of[f->mapping] + 1 : 0;

			if (c->file)
				put_in(x, &x->sources, 0, c->file);
			x->rows[f->first + k] = (struct row){ .frame = (uint32_t)i,
				.depth = f->n - 1 - k,
				.function = put_in(
					x, &x->functions, (uint64_t)c->name << 32 | c->file, resource) };
		}
	}
}

/* The stacks as a tree: each node is a call, and what called it. */
static void make_nodes(struct firefox *x)
{
	const struct profile *p = x->p;

	for (size_t i = 0; i < p->n_stacks; i++) {
		uint32_t node = NO_PREFIX;

		for (uint32_t k = p->stacks[i].n; k-- > 0;) {
			const struct profile_frame *f = &p->frames[p->stacked[p->stacks[i].first + k]];

			for (uint32_t c = f->n; c-- > 0;)
				node = put_in(x, &x->nodes, node, f->first + c);
		}
		x->leaves[i] = node;
	}
}

static void put_categories(struct json *j)
{
	static const struct {
		const char *name, *color;
	} categories[] = { [OTHER] = { "Other", "grey" },
		[USER] = { "User", "yellow" },
		[KERNEL] = { "Kernel", "orange" },
		[SCRIPT] = { "Script", "blue" } };

	json_begin(j, "categories", '[');
	for (size_t i = 0; i < ARRAY_LEN(categories); i++) {
		json_begin(j, NULL, '{');
		json_str(j, "name", categories[i].name);
		json_str(j, "color", categories[i].color);
		json_begin(j, "subcategories", '[');
		json_str(j, NULL, "Other");
		json_end(j, ']');
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_schema(struct json *j)
{
	static const struct {
		const char *key, *label, *format;
	} members[] = { { "kind", "Kind", "string" }, { "state", "State", "string" },
		{ "waker", "Woken by", "string" }, { "runnable", "On a run queue", "duration" },
		{ "note", "Note", "string" } };

	json_begin(j, "markerSchema", '[');
	json_begin(j, NULL, '{');
	json_str(j, "name", "Wait");
	json_str(j, "tooltipLabel", "Wait: {marker.data.kind}");
	json_str(j, "tableLabel", "{marker.data.kind}");
	json_str(j, "chartLabel", "{marker.data.kind}");
	json_begin(j, "display", '[');
	json_str(j, NULL, "marker-chart");
	json_str(j, NULL, "marker-table");
	json_end(j, ']');
	json_begin(j, "fields", '[');
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		json_begin(j, NULL, '{');
		json_str(j, "key", members[i].key);
		json_str(j, "label", members[i].label);
		json_str(j, "format", members[i].format);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_end(j, '}');
	json_end(j, ']');
}

static void put_meta(struct firefox *x, struct json *j)
{
	const struct profile *p = x->p;
	char text[64];

	snprintf(text, sizeof(text), "stackexport %s", cli_version_string);
	json_begin(j, "meta", '{');
	json_u64(j, "interval", 1);
	put_ms(j, "startTime", p->start_real_ns);
	json_u64(j, "startTimeAsClockMonotonicNanosecondsSinceBoot", p->start_mono_ns);
	json_u64(j, "profilingStartTime", 0);
	put_ms(j, "profilingEndTime", p->duration_ns);
	json_u64(j, "processType", 0);
	put_categories(j);
	put_text(j, "product", x, p->recorder);
	json_u64(j, "stackwalk", 1);
	json_u64(j, "version", GECKO_VERSION);
	json_u64(j, "preprocessedProfileVersion", PROCESSED_VERSION);
	put_text(j, "abi", x, p->machine);
	put_text(j, "oscpu", x, p->release);
	put_text(j, "device", x, p->hostname);
	json_str(j, "platform", "Linux");
	json_bool(j, "symbolicated", true);
	json_bool(j, "usesOnlyOneStackType", true);
	json_bool(j, "sourceCodeIsNotOnSearchfox", true);
	json_str(j, "importedFrom", text);
	put_schema(j);
	json_end(j, '}');
}

/*
 * A Breakpad ID is the first 16 bytes of a build ID as a GUID, whose first three numbers are written the
 * other way round, and an age, 0.
 */
static const char *breakpad_id(const char *digits, size_t len, char id[34])
{
	static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };

	memset(id, '0', 33);
	id[33] = '\0';
	for (size_t i = 0; i < 16; i++) {
		for (size_t k = 0; k < 2; k++) {
			const size_t at = 2 * (size_t)order[i] + k;
			const char c = at < len ? digits[at] : '0';

			id[2 * i + k] = (char)(c >= 'a' && c <= 'f' ? c - 'a' + 'A' : c);
		}
	}
	return id;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void put_lib(struct firefox *x, struct json *j, profile_text name, profile_text build_id)
{
	const char *path = profile_cstr(x->p, name, &x->text), *digits;
	char id[34];
	size_t len;

	digits = profile_str(x->p, build_id, &len);
	json_begin(j, NULL, '{');
	json_str(j, "path", path);
	json_str(j, "debugPath", path);
	json_str(j, "name", base_name(path));
	json_str(j, "debugName", base_name(path));
	json_str(j, "breakpadId", breakpad_id(digits, len, id));
	if (len)
		put_text(j, "codeId", x, build_id);
	else
		json_null(j, "codeId");
	put_text(j, "arch", x, x->p->machine);
	json_end(j, '}');
	x->failed = x->failed || x->text.failed;
}

static void put_libs(struct firefox *x, struct json *j)
{
	json_begin(j, "libs", '[');
	for (size_t i = 0; i < x->resources.n; i++) {
		const struct idmap_slot *r = &x->resources.slots[i];

		if (x->libs[i] != PROFILE_NONE)
			put_lib(x, j, (profile_text)r->hi, (profile_text)r->lo);
	}
	json_end(j, ']');
}

/* A column of N values, each of VALUE, which has the index I. */
#define COLUMN(j, key, n, i, value)                                                                          \
	do {                                                                                                 \
		json_begin(j, key, '[');                                                                     \
		for (size_t i = 0; i < (n); i++)                                                             \
			value;                                                                               \
		json_end(j, ']');                                                                            \
	} while (0)

static void put_index(struct json *j, uint32_t v)
{
	if (v == UINT32_MAX)
		json_null(j, NULL);
	else
		json_u64(j, NULL, v);
}

static void put_known(struct json *j, uint32_t v)
{
	put_index(j, v ? v : UINT32_MAX);
}

static void put_stack_table(struct firefox *x, struct json *j)
{
	const struct idmap *t = &x->nodes;

	json_begin(j, "stackTable", '{');
	COLUMN(j, "frame", t->n, i, json_u64(j, NULL, t->slots[i].lo));
	COLUMN(j, "prefix", t->n, i, put_index(j, (uint32_t)t->slots[i].hi));
	json_u64(j, "length", t->n);
	json_end(j, '}');
}

/* The address in the library, -1 for none: JavaScript's numbers are exact to 2^53. */
static void put_address(struct firefox *x, struct json *j, const struct row *r)
{
	const struct profile_frame *f = &x->p->frames[r->frame];

	if (f->in_module && f->mapping != PROFILE_NONE && x->libs[x->resource_of[f->mapping]] != PROFILE_NONE)
		json_u64(j, NULL, f->module_address - !f->exact);
	else
		json_number(j, NULL, "-1", 2);
}

static void put_frame_table(struct firefox *x, struct json *j)
{
	const struct profile *p = x->p;
	const struct row *rows = x->rows;

	json_begin(j, "frameTable", '{');
	COLUMN(j, "address", p->n_calls, i, put_address(x, j, &rows[i]));
	COLUMN(j, "inlineDepth", p->n_calls, i, json_u64(j, NULL, rows[i].depth));
	COLUMN(j, "category", p->n_calls, i, json_u64(j, NULL, category_of(&p->frames[rows[i].frame])));
	COLUMN(j, "subcategory", p->n_calls, i, json_u64(j, NULL, 0));
	COLUMN(j, "func", p->n_calls, i, json_u64(j, NULL, rows[i].function));
	COLUMN(j, "nativeSymbol", p->n_calls, i, json_null(j, NULL));
	COLUMN(j, "innerWindowID", p->n_calls, i, json_u64(j, NULL, 0));
	COLUMN(j, "line", p->n_calls, i, put_known(j, p->calls[i].line));
	COLUMN(j, "column", p->n_calls, i, put_known(j, p->calls[i].column));
	json_u64(j, "length", p->n_calls);
	json_end(j, '}');
}

static uint32_t source_of(struct firefox *x, const struct idmap_slot *function)
{
	const struct idmap_slot *s = idmap_find(&x->sources, 0, (uint32_t)function->hi);

	return s ? s->value : UINT32_MAX;
}

static void put_function_table(struct firefox *x, struct json *j)
{
	const struct idmap *t = &x->functions;

	json_begin(j, "funcTable", '{');
	COLUMN(j, "name", t->n, i, json_u64(j, NULL, t->slots[i].hi >> 32));
	COLUMN(j, "isJS", t->n, i, json_bool(j, NULL, false));
	COLUMN(j, "relevantForJS", t->n, i, json_bool(j, NULL, false));
	COLUMN(j, "resource", t->n, i,
		t->slots[i].lo ? json_u64(j, NULL, t->slots[i].lo - 1) : json_number(j, NULL, "-1", 2));
	COLUMN(j, "source", t->n, i, put_index(j, source_of(x, &t->slots[i])));
	COLUMN(j, "lineNumber", t->n, i, json_null(j, NULL));
	COLUMN(j, "columnNumber", t->n, i, json_null(j, NULL));
	json_u64(j, "length", t->n);
	json_end(j, '}');
}

static void put_resource_table(struct firefox *x, struct json *j)
{
	const struct idmap *t = &x->resources;

	json_begin(j, "resourceTable", '{');
	COLUMN(j, "lib", t->n, i, put_index(j, x->libs[i]));
	COLUMN(j, "name", t->n, i, json_u64(j, NULL, t->slots[i].hi));
	COLUMN(j, "host", t->n, i, json_null(j, NULL));
	COLUMN(j, "type", t->n, i, json_u64(j, NULL, x->libs[i] != PROFILE_NONE));
	json_u64(j, "length", t->n);
	json_end(j, '}');
}

static void put_sources(struct firefox *x, struct json *j)
{
	const struct idmap *t = &x->sources;

	json_begin(j, "sources", '{');
	COLUMN(j, "id", t->n, i, json_null(j, NULL));
	COLUMN(j, "filename", t->n, i, json_u64(j, NULL, t->slots[i].lo));
	COLUMN(j, "startLine", t->n, i, json_u64(j, NULL, 1));
	COLUMN(j, "startColumn", t->n, i, json_u64(j, NULL, 1));
	COLUMN(j, "sourceMapURL", t->n, i, json_null(j, NULL));
	json_u64(j, "length", t->n);
	json_end(j, '}');
}

static void put_native_symbols(struct json *j)
{
	static const char *const columns[] = { "libIndex", "address", "name", "functionSize" };

	json_begin(j, "nativeSymbols", '{');
	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		json_begin(j, columns[i], '[');
		json_end(j, ']');
	}
	json_u64(j, "length", 0);
	json_end(j, '}');
}

static void put_shared(struct firefox *x, struct json *j)
{
	json_begin(j, "shared", '{');
	put_stack_table(x, j);
	put_frame_table(x, j);
	put_function_table(x, j);
	put_resource_table(x, j);
	put_native_symbols(j);
	put_sources(x, j);
	COLUMN(j, "stringArray", x->p->texts.n, i, put_text(j, NULL, x, (profile_text)i));
	json_end(j, '}');
}

/* The records of one thread and event: a copy, since every column of a table reads them all. */
struct span {
	struct profile_record *r;
	size_t n;
};

/* Those of group G; free .r, which is NULL when memory runs out. */
static struct span span_of(struct firefox *x, size_t g)
{
	const uint32_t *order = x->groups.order + x->groups.first[g];
	struct span s = { .n = x->groups.first[g + 1] - x->groups.first[g] };

	s.r = calloc(s.n + 1, sizeof(*s.r));
	x->failed = x->failed || !s.r;
	for (size_t i = 0; i < s.n && s.r; i++)
		s.r[i] = x->p->records[order[i]];
	return s;
}

static void put_samples(struct firefox *x, struct json *j, const struct span *s)
{
	json_begin(j, "samples", '{');
	COLUMN(j, "stack", s->n, i, json_u64(j, NULL, x->leaves[s->r[i].stack]));
	COLUMN(j, "time", s->n, i, put_ms(j, NULL, since_start(x, s->r[i].last_ns)));
	COLUMN(j, "weight", s->n, i, put_ms(j, NULL, s->r[i].total_ns));
	json_str(j, "weightType", "tracing-ms");
	json_u64(j, "length", s->n);
	json_end(j, '}');
}

static void put_marker_data(struct firefox *x, struct json *j, const struct profile_record *r)
{
	json_begin(j, NULL, '{');
	json_str(j, "type", "Wait");
	put_text(j, "kind", x, r->kind ? r->kind : x->wait);
	if (r->state)
		put_text(j, "state", x, r->state);
	if (r->waker != PROFILE_NONE)
		put_text(j, "waker", x, x->p->wakers[r->waker].name);
	if (r->is_split)
		put_ms(j, "runnable", r->runnable_ns);
	if (r->open || r->initial || r->preempted)
		json_str(j, "note",
			r->preempted ? "lost the CPU"
			: r->open    ? "had not ended when the recording did"
				     : "had begun before the recording");
	json_begin(j, "cause", '{');
	put_ms(j, "time", since_start(x, r->first_ns));
	json_u64(j, "stack", x->leaves[r->stack]);
	json_end(j, '}');
	json_end(j, '}');
}

/* Waits that are a record each, which remain in S; a sum of several has no place on a time line. */
static void put_markers(struct firefox *x, struct json *j, struct span *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->r[i].count == 1 && !s->r[i].is_sample)
			s->r[n++] = s->r[i];
	s->n = n;
	json_begin(j, "markers", '{');
	COLUMN(j, "data", n, i, put_marker_data(x, j, &s->r[i]));
	COLUMN(j, "name", n, i, json_u64(j, NULL, s->r[i].kind ? s->r[i].kind : x->wait));
	COLUMN(j, "startTime", n, i, put_ms(j, NULL, since_start(x, s->r[i].first_ns)));
	COLUMN(j, "endTime", n, i,
		put_ms(j, NULL, since_start(x, add_saturating(s->r[i].first_ns, s->r[i].total_ns))));
	COLUMN(j, "phase", n, i, json_u64(j, NULL, 1));
	COLUMN(j, "category", n, i, json_u64(j, NULL, OTHER));
	json_u64(j, "length", n);
	json_end(j, '}');
}

/* What a thread waited for, and what it executed, are two: their weights must not be summed. */
static void put_thread(struct firefox *x, struct json *j, size_t group, struct span *s)
{
	const struct profile_thread *t = &x->p->threads[group / 2];
	const struct profile_process *p = &x->p->processes[t->process];
	char number[32];

	json_begin(j, NULL, '{');
	json_str(j, "processType", "default");
	json_u64(j, "processStartupTime", 0);
	json_null(j, "processShutdownTime");
	json_u64(j, "registerTime", 0);
	json_null(j, "unregisterTime");
	json_begin(j, "pausedRanges", '[');
	json_end(j, ']');
	profile_cstr(x->p, t->comm, &x->text);
	if (group % 2 && !x->text.failed) {
		x->text.len--;
		buf_put(&x->text, " on CPU", 8);
	}
	x->failed = x->failed || x->text.failed;
	json_str(j, "name", x->text.failed ? "" : (const char *)x->text.p);
	json_bool(j, "isMainThread", t->tid == p->pid);
	put_text(j, "processName", x, p->comm);
	snprintf(number, sizeof(number), "%" PRIu32, p->pid);
	json_str(j, "pid", number);
	json_u64(j, "tid", t->tid);
	put_samples(x, j, s);
	put_markers(x, j, s);
	json_end(j, '}');
}

static void put_file(struct firefox *x)
{
	struct json j = { .o = x->out };

	json_begin(&j, NULL, '{');
	put_meta(x, &j);
	put_libs(x, &j);
	put_shared(x, &j);
	json_begin(&j, "threads", '[');
	for (size_t g = 0; g < x->groups.n && !x->out->code && !x->failed; g++) {
		struct span s = span_of(x, g);

		if (s.n && s.r)
			put_thread(x, &j, g, &s);
		free(s.r);
	}
	json_end(&j, ']');
	json_end(&j, '}');
	out_char(x->out, '\n');
}

int export_firefox(struct profile *p, struct out *out, struct err *e)
{
	struct firefox x = { .p = p,
		.out = out,
		.rows = calloc(p->n_calls + 1, sizeof(*x.rows)),
		.leaves = calloc(p->n_stacks + 1, sizeof(*x.leaves)),
		.resource_of = calloc(p->n_mappings + 1, sizeof(*x.resource_of)),
		.libs = calloc(p->n_mappings + 1, sizeof(*x.libs)),
		.wait = profile_put(p, "wait") };

	x.failed = !x.rows || !x.leaves || !x.libs || !x.resource_of || x.wait == INTERN_NONE ||
		   profile_by_thread(p, &x.groups) != 0;
	if (!x.failed) {
		find_resources(&x);
		make_rows(&x);
		make_nodes(&x);
	}
	if (!x.failed)
		put_file(&x);
	profile_groups_free(&x.groups);
	idmap_free(&x.functions);
	idmap_free(&x.sources);
	idmap_free(&x.nodes);
	idmap_free(&x.resources);
	buf_free(&x.text);
	free(x.rows);
	free(x.leaves);
	free(x.resource_of);
	free(x.libs);
	return x.failed ? err_nomem(e, "the profile") : 0;
}
