/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwarf.h"
#include "base/clock.h"
#include "base/search.h"
#include "elf/dwarf_entries.h"
#include "elf/dwarf_lines.h"
#include "elf/dwarf_split.h"
#include "elf/dwarf_walk.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/*
 * dwarf_plan - which units to read for which addresses, from the ranges in each
 * unit's first entry.
 */

/* Addresses FROM to TO (exclusive) lie in UNIT (index among the units). */
struct dwarf_plan_part {
	uint32_t unit, from, to;
};

struct dwarf_plan {
	struct dwarf_plan_part *parts; /* by unit, then by address; those of a unit do not overlap */
	size_t n_parts, parts_cap;
	uint32_t *open; /* units that may have functions but do not say where */
	size_t n_open, open_cap;
	uint32_t *covers; /* for each address: number of units that cover it */
	uint64_t covers_left; /* limit for their sum */
	struct dwarf_span_list spans;
	bool skeleton; /* the current unit is one */
};

/* code is normally in one unit, in a few because of folded identical code and unusual compilers */
#define COVERS_MIN (UINT64_C(16) << 20)
#define COVERS_EACH 64

/* The address of the first section of code; there is no code below. */
static uint64_t dwarf_plan_lowest(const struct elffile *f)
{
	uint64_t low = UINT64_MAX;

	for (size_t i = 0; i < f->n_sections; i++)
		if ((f->sections[i].flags & SHF_EXECINSTR) && f->sections[i].size)
			low = MIN(low, f->sections[i].addr);
	return low == UINT64_MAX ? 0 : low;
}

static size_t first_from(const uint64_t *vaddrs, size_t n, uint64_t low)
{
	size_t lo = PARTITION_POINT(0, n, mid, vaddrs[mid] < low);

	return lo;
}

static int by_from(const void *a, const void *b)
{
	const struct dwarf_plan_part *x = a, *y = b;

	return CMP(x->from, y->from);
}

static int add_part(struct dwarf_plan *p, uint32_t unit, size_t from, size_t to)
{
	if (base_grow(&p->parts, &p->parts_cap, p->n_parts + 1, sizeof(*p->parts)) != 0)
		return -ENOMEM;
	p->parts[p->n_parts++] = (struct dwarf_plan_part){ unit, (uint32_t)from, (uint32_t)to };
	return 0;
}

/*
 * The parts from FIRST on belong to one unit: sort them, merge those that
 * touch, count what they cover. Since every unit may claim every address,
 * returns false and drops them if the limit is exceeded.
 */
static bool settle(struct dwarf_plan *p, size_t first)
{
	size_t n = first;
	uint64_t sum = 0;

	if (p->n_parts == first)
		return true;
	qsort(p->parts + first, p->n_parts - first, sizeof(*p->parts), by_from);
	for (size_t i = first + 1; i < p->n_parts; i++) {
		if (p->parts[i].from <= p->parts[n].to)
			p->parts[n].to = MAX(p->parts[n].to, p->parts[i].to);
		else
			p->parts[++n] = p->parts[i];
	}
	p->n_parts = n + 1;
	for (size_t i = first; i < p->n_parts; i++)
		sum += p->parts[i].to - p->parts[i].from;
	if (sum > p->covers_left) {
		p->n_parts = first;
		return false;
	}
	p->covers_left -= sum;
	for (size_t i = first; i < p->n_parts; i++)
		for (uint32_t k = p->parts[i].from; k < p->parts[i].to; k++)
			p->covers[k]++;
	return true;
}

/* Returns 1 if the first entry of unit I of D has the ranges of all of its code, else 0 or -errno. */
static int spans_of(struct dwarf_plan *p, struct dwarf_info *d, size_t i, uint64_t lowest, struct err *e)
{
	struct dwarf_bases b = { .info = d, .main = d, .unit = &d->units[i], .lowest = lowest };
	struct dwarf_root root;
	int rc;

	p->spans.n = 0;
	rc = dwarf_info_root(d, b.unit, &root, e);
	if (rc)
		return rc;
	if (root.str_base != DWARF_INFO_UNKNOWN)
		b.unit->str_base = root.str_base;
	p->skeleton = root.dwo_name.kind != DWARF_VALUE_NONE;
	dwarf_range_bases(&b, &root, false);
	rc = dwarf_range_read(&b, &root.low, &root.high, &root.ranges, &p->spans, e);
	if (rc || root.ranges.kind != DWARF_VALUE_NONE || (!root.children && !p->skeleton))
		return rc ? rc : 1;
	/* DWARF 2 has no ranges: code in other sections would be missing */
	return root.high.kind != DWARF_VALUE_NONE && b.unit->shape.version > 2;
}

/* 0, -ENOMEM; -EINVAL: too many units cover the same addresses. */
static int plan_unit(struct dwarf_plan *p, size_t i, const uint64_t *vaddrs, size_t n)
{
	size_t first = p->n_parts;
	int rc = 0;

	for (size_t s = 0; s < p->spans.n && !rc; s++) {
		size_t from = first_from(vaddrs, n, p->spans.v[s].low);
		size_t to = from;

		if (from < n && vaddrs[from] < p->spans.v[s].high)
			to = first_from(vaddrs, n, p->spans.v[s].high);
		if (to > from)
			rc = add_part(p, (uint32_t)i, from, to);
	}
	return rc ? rc : settle(p, first) ? 0 : -EINVAL;
}

static int plan_open(struct dwarf_plan *p, struct dwarf_info *d, size_t i)
{
	if (!p->skeleton && !dwarf_info_has_functions(d, &d->units[i]))
		return 0;
	if (base_grow(&p->open, &p->open_cap, p->n_open + 1, sizeof(*p->open)) != 0)
		return -ENOMEM;
	p->open[p->n_open++] = (uint32_t)i;
	return 0;
}

/*
 * Plan for N addresses (ascending). Ranges that begin below LOWEST are not code
 * of this file. A unit whose first entry is malformed is skipped; *BAD counts
 * these, and E has the first such message. 0 or -ENOMEM.
 */
static int dwarf_plan_make(struct dwarf_plan *p, struct dwarf_info *d, uint64_t lowest,
	const uint64_t *vaddrs, size_t n, uint64_t *bad, struct err *e)
{
	int rc = 0;

	*p = (struct dwarf_plan){ .covers_left = COVERS_MIN + COVERS_EACH * (uint64_t)n,
		.covers = calloc(n ? n : 1, sizeof(*p->covers)) };
	if (!p->covers || n > UINT32_MAX || d->n > UINT32_MAX)
		return err_nomem(e, "a plan of debug information");
	for (size_t i = 0; i < d->n && rc != -ENOMEM; i++) {
		struct err one = { 0 };
		int reported = spans_of(p, d, i, lowest, &one);

		rc = reported == -ENOMEM ? reported : plan_unit(p, i, vaddrs, n);
		if (!rc && !reported)
			rc = plan_open(p, d, i);
		if (rc == -EINVAL)
			reported = err_set(
				&one, rc, "too many units of debug information cover the same addresses");
		if (reported < 0 && !(*bad)++ && e)
			*e = one;
	}
	return rc == -ENOMEM ? err_nomem(e, "a plan of debug information") : 0;
}

static void dwarf_plan_free(struct dwarf_plan *p)
{
	free(p->parts);
	free(p->open);
	free(p->covers);
	free(p->spans.v);
	*p = (struct dwarf_plan){ 0 };
}

/*
 * dwarf_top - a unit's first entry, decoded: its strings, the bases of its
 * entries, its lines.
 */

struct dwarf_top {
	struct dwarf_root root;
	struct dwarf_bases bases;
	char *comp_dir, *name, *dwo_name; /* NULL = not given */
};

static void dwarf_top_free(struct dwarf_top *t);

static char *copy_text(
	struct dwarf_info *d, struct dwarf_info *alt, struct dwarf_unit *u, const struct dwarf_value *v)
{
	const char *text = dwarf_info_text(d, alt, u, v);

	return text ? strdup(text) : NULL;
}

/*
 * Read the first entry of unit U of D. ALT is the alternate file or NULL. *T is
 * zeroed or has another unit.
 */
static int dwarf_top_read(struct dwarf_top *t, struct dwarf_info *d, struct dwarf_info *alt,
	struct dwarf_unit *u, uint64_t lowest, struct err *e)
{
	int rc;

	dwarf_top_free(t);
	rc = dwarf_info_root(d, u, &t->root, e);
	if (rc)
		return rc;
	if (t->root.str_base != DWARF_INFO_UNKNOWN)
		u->str_base = t->root.str_base;
	/* reading another root would overwrite the strings in this one */
	else if (u->str_base == DWARF_INFO_UNKNOWN)
		u->str_base = u->shape.version < 5 ? 0 : u->shape.offset_size * UINT64_C(2);
	t->comp_dir = copy_text(d, alt, u, &t->root.comp_dir);
	t->name = copy_text(d, alt, u, &t->root.name);
	t->dwo_name = copy_text(d, alt, u, &t->root.dwo_name);
	t->bases = (struct dwarf_bases){ .info = d, .main = d, .unit = u, .lowest = lowest };
	dwarf_range_bases(&t->bases, &t->root, false);
	return 0;
}

static void dwarf_top_free(struct dwarf_top *t)
{
	free(t->comp_dir);
	free(t->name);
	free(t->dwo_name);
	*t = (struct dwarf_top){ 0 };
}

/* Is the content of the unit in another file? */
static bool dwarf_top_is_skeleton(const struct dwarf_top *t)
{
	return t->dwo_name && t->root.id;
}

/* The original path of that file, in new memory; NULL = not known. */
static char *dwarf_top_dwo_path(const struct dwarf_top *t)
{
	char *path = NULL;

	if (!t->dwo_name)
		return NULL;
	if (t->dwo_name[0] == '/' || !t->comp_dir)
		return strdup(t->dwo_name);
	return asprintf(&path, "%s/%s", t->comp_dir, t->dwo_name) < 0 ? NULL : path;
}

/* Open its line table: 0 and *RET, NULL = it has none; else as dwarf_line_open(). */
static int dwarf_top_lines(const struct dwarf_top *t, struct dwarf_line **ret, struct err *e)
{
	const struct dwarf_line_opts o = { .offset = t->root.lines,
		.addr_size = t->bases.unit->shape.addr_size,
		.comp_dir = t->comp_dir,
		.name = t->name };

	*ret = NULL;
	return o.offset == DWARF_INFO_UNKNOWN ? 0 : dwarf_line_open(t->bases.info->sect, &o, ret, e);
}

struct dwarf_hit_held;

struct dwarf_hit_held {
	struct dwarf_lookup_hit hit;
	uint64_t rank;
	struct dwarf_lookup_frame frames[];
};

static size_t text_size(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

static const char *put_text(char **at, const char *s)
{
	size_t n = text_size(s);

	if (!n)
		return NULL;
	memcpy(*at, s, n);
	*at += n;
	return *at - n;
}

/* Copy HIT with its strings, which are only valid during the call. */
static struct dwarf_hit_held *copy_of(const struct dwarf_lookup_hit *hit, uint64_t rank)
{
	size_t size = sizeof(struct dwarf_hit_held) + hit->n * sizeof(*hit->frames);
	struct dwarf_hit_held *h;
	char *at;

	for (size_t i = 0; i < hit->n; i++)
		size += text_size(hit->frames[i].name) + text_size(hit->frames[i].linkage) +
			text_size(hit->frames[i].file);
	h = malloc(size);
	if (!h)
		return NULL;
	h->rank = rank;
	h->hit = *hit;
	h->hit.frames = h->frames;
	at = (char *)&h->frames[hit->n];
	for (size_t i = 0; i < hit->n; i++) {
		h->frames[i] = hit->frames[i];
		h->frames[i].name = put_text(&at, hit->frames[i].name);
		h->frames[i].linkage = put_text(&at, hit->frames[i].linkage);
		h->frames[i].file = put_text(&at, hit->frames[i].file);
	}
	return h;
}

/*
 * Offer HIT (NULL = none), what one more unit says about an address. *HELD,
 * first NULL, is a copy of the hit with the lowest RANK so far, of equal ones
 * the first. With LAST the best hit is passed to SINK, and *HELD is NULL again.
 * If there is no memory for a copy, the hit is dropped, and a later one may be
 * used.
 */
static void dwarf_hit_offer(struct dwarf_hit_held **held, const struct dwarf_lookup_hit *hit, uint64_t rank,
	bool last, dwarf_lookup_sink *sink, void *ctx)
{
	bool better = hit && (!*held || rank < (*held)->rank);

	if (last) {
		if (better)
			sink(ctx, hit);
		else if (*held)
			sink(ctx, &(*held)->hit);
		free(*held);
		*held = NULL;
		return;
	}
	if (better) {
		struct dwarf_hit_held *copy = copy_of(hit, rank);

		if (copy) {
			free(*held);
			*held = copy;
		}
	}
}

#define FRAMES_MAX 1024
#define MARKS_MIN (UINT64_C(1) << 20)
#define MARKS_EACH 4096 /* times an address may be found to be covered: nesting, and repeated walks */

/* The current unit; its arrays are reused. */
struct open_unit {
	struct dwarf_unit *unit; /* whose entries are read */
	struct dwarf_name_table *names;
	struct dwarf_top top; /* of the unit in the file itself; its bases become those of UNIT */
	const struct dwarf_abbrev_table *table;
	struct dwarf_line *line;
	uint32_t *index; /* index of each address among the requested ones */
	uint64_t *addrs;
	struct dwarf_walk_place *places;
	struct dwarf_line_row *rows;
	size_t n, index_cap, addrs_cap, places_cap, rows_cap;
	struct dwarf_call_table calls;
	int error, lines_error; /* -ENOENT: its split unit is missing; lines_error: of its line program */
};

struct dwarf_lookup {
	struct dwarf_lookup_opts o;
	struct dwarf_info *info, *alt;
	struct dwarf_name_table names;
	struct dwarf_split dwp, dwo; /* dwo: of the current unit */
	uint64_t lowest;
	struct dwarf_lookup_stats stats;
	struct dwarf_plan plan;
	struct dwarf_piece piece; /* the unit's bytes */
	struct dwarf_walk walk;
	struct open_unit u;
	struct dwarf_hit_held **held; /* for each address: best hit so far of several units */
	const uint64_t *vaddrs;
	size_t n;
	struct dwarf_lookup_frame *frames;
	size_t frames_cap;
	dwarf_lookup_sink *sink;
	dwarf_lookup_want *want;
	void *ctx;
	struct err *e;
	bool reported; /* E has its message */
};

/* --- open, close --- */

int dwarf_lookup_open(const struct dwarf_lookup_opts *o, struct dwarf_lookup **ret, struct err *e)
{
	struct dwarf_lookup *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return err_nomem(e, "debug information");
	d->o = *o;
	if (!d->o.max_bytes)
		d->o.max_bytes = UINT64_MAX;
	d->lowest = dwarf_plan_lowest(o->elf);
	rc = dwarf_info_open(o->elf, false, d->o.max_bytes, &d->info, e);
	/* an alternate file or a .dwp that cannot be read is treated as missing */
	if (!rc && o->alt && dwarf_info_open(o->alt, false, d->o.max_bytes, &d->alt, NULL) == 0)
		d->names.alt = d->alt;
	if (!rc && o->dwp && dwarf_split_open(&d->dwp, o->dwp, true, d->o.max_bytes, NULL) != 0)
		dwarf_split_close(&d->dwp);
	if (rc) {
		dwarf_lookup_close(d);
		return rc;
	}
	d->stats.units = d->info->n;
	*ret = d;
	return 0;
}

static void free_unit(struct open_unit *u)
{
	dwarf_line_close(u->line);
	dwarf_top_free(&u->top);
	free(u->index);
	free(u->addrs);
	free(u->places);
	free(u->rows);
	dwarf_call_table_free(&u->calls);
}

void dwarf_lookup_close(struct dwarf_lookup *d)
{
	if (!d)
		return;
	free_unit(&d->u);
	free(d->frames);
	dwarf_walk_free(&d->walk);
	dwarf_piece_free(&d->piece);
	dwarf_plan_free(&d->plan);
	dwarf_split_close(&d->dwo);
	dwarf_split_close(&d->dwp);
	dwarf_name_table_free(&d->names);
	dwarf_info_close(d->alt);
	dwarf_info_close(d->info);
	free(d);
}

void dwarf_lookup_stats(const struct dwarf_lookup *d, struct dwarf_lookup_stats *ret)
{
	*ret = d->stats;
}

static void note_peak(struct dwarf_lookup *d)
{
	const struct open_unit *u = &d->u;
	uint64_t sum = dwarf_info_bytes(d->info) + (d->alt ? dwarf_info_bytes(d->alt) : 0) + d->names.bytes +
		       d->names.cap * sizeof(*d->names.list) + idmap_bytes(&d->names.known) +
		       d->plan.parts_cap * sizeof(*d->plan.parts) + d->n * sizeof(*d->plan.covers) +
		       d->piece.cap + d->walk.nodes_cap * sizeof(*d->walk.nodes) +
		       u->index_cap * sizeof(*u->index) + u->addrs_cap * sizeof(*u->addrs) +
		       u->places_cap * sizeof(*u->places) + u->rows_cap * sizeof(*u->rows) +
		       u->calls.cap * sizeof(*u->calls.list) + (u->line ? dwarf_line_bytes(u->line) : 0);

	d->stats.peak_bytes = MAX(d->stats.peak_bytes, sum);
}

/* Report an error in a unit: the first message is kept in E. */
static int message(struct dwarf_lookup *d, const struct err *one)
{
	if (!d->reported && d->e)
		*d->e = *one;
	d->reported = true;
	return one->code;
}

/*
 * Deliver HIT (NULL = none) of address INDEX from one unit. The best hit is
 * passed to the sink after the last unit that covers the address.
 */
static void deliver(struct dwarf_lookup *d, size_t index, const struct dwarf_lookup_hit *hit, uint64_t rank)
{
	if (d->plan.covers[index])
		d->plan.covers[index]--;
	dwarf_hit_offer(&d->held[index], hit, rank, d->plan.covers[index] == 0, d->sink, d->ctx);
}

/* --- frames --- */

static int add_frame(struct dwarf_lookup *d, size_t n, const struct dwarf_lookup_frame *f)
{
	int rc = base_grow(&d->frames, &d->frames_cap, n + 1, sizeof(*d->frames));

	if (!rc)
		d->frames[n] = *f;
	return rc;
}

/* FILE as in the line table: from 1 before DWARF 5, where 0 is none. */
static void set_place(
	struct dwarf_lookup *d, uint32_t file, uint32_t line, uint32_t column, struct dwarf_lookup_frame *f)
{
	const struct open_unit *u = &d->u;

	if (!d->o.lines)
		return;
	if (u->line && file != DWARF_CALL_NO_FILE && (file || u->unit->shape.version >= 5))
		f->file = dwarf_line_file(u->line, file);
	f->line = line;
	f->column = column;
}

static void place_of_row(struct dwarf_lookup *d, size_t i, struct dwarf_lookup_frame *f)
{
	const struct dwarf_line_row *row = &d->u.rows[i];

	if (row->file != DWARF_CALL_NO_FILE)
		set_place(d, row->file, row->line, row->column, f);
}

/* Add the frames of address I of the unit, from its innermost node. */
static void chain(struct dwarf_lookup *d, size_t i, struct dwarf_lookup_hit *hit)
{
	struct dwarf_lookup_frame f = { 0 };

	place_of_row(d, i, &f);
	for (uint32_t at = d->u.places[i].node; at != DWARF_WALK_NONE; at = d->walk.nodes[at].parent) {
		const struct dwarf_walk_node *node = &d->walk.nodes[at];
		const struct dwarf_call_table_one *c;

		if (node->parent != DWARF_WALK_NONE && !d->o.inlines)
			continue;
		c = dwarf_call_table_get(&d->u.calls, at, node->at);
		f.name = c->name.name;
		f.linkage = c->name.linkage;
		if (c->name.alt_missing && !f.name && !f.linkage)
			hit->error = -ENOENT;
		if (hit->n >= FRAMES_MAX || add_frame(d, hit->n, &f) != 0)
			break;
		hit->n++;
		hit->low = node->low;
		f = (struct dwarf_lookup_frame){ 0 };
		set_place(d, c->call.file, c->call.line, c->call.column, &f);
	}
}

/* Deliver what is known about address I of the unit; ERROR if it has no function. */
static void report(struct dwarf_lookup *d, size_t i, int error)
{
	struct open_unit *u = &d->u;
	const struct dwarf_walk_place *p = &u->places[i];
	struct dwarf_lookup_hit hit = { .index = u->index[i], .error = u->error };
	struct dwarf_lookup_frame f = { 0 };
	uint64_t rank = p->size;

	if (p->node != DWARF_WALK_NONE) {
		chain(d, i, &hit);
	} else {
		hit.error = error ? error : u->error;
		place_of_row(d, i, &f);
		if (f.file && f.line && add_frame(d, 0, &f) == 0)
			hit.n = 1;
		rank = UINT64_MAX - (hit.n ? 1 : 0);
	}
	if (!hit.error && u->lines_error && !(hit.n && d->frames[0].line))
		hit.error = u->lines_error;
	hit.frames = d->frames;
	deliver(d, hit.index, hit.n || hit.error ? &hit : NULL, rank);
}

/* --- one unit --- */

static int grow_unit(struct open_unit *u, size_t n)
{
	if (base_grow(&u->index, &u->index_cap, n, sizeof(*u->index)) != 0 ||
		base_grow(&u->addrs, &u->addrs_cap, n, sizeof(*u->addrs)) != 0 ||
		base_grow(&u->places, &u->places_cap, n, sizeof(*u->places)) != 0 ||
		base_grow(&u->rows, &u->rows_cap, n, sizeof(*u->rows)) != 0)
		return -ENOMEM;
	return 0;
}

static int add_addr(struct dwarf_lookup *d, uint32_t index)
{
	struct open_unit *u = &d->u;

	if (grow_unit(u, u->n + 1) != 0)
		return -ENOMEM;
	u->index[u->n] = index;
	u->addrs[u->n] = d->vaddrs[index];
	u->places[u->n] = (struct dwarf_walk_place){ .size = UINT64_MAX, .node = DWARF_WALK_NONE };
	u->rows[u->n] = (struct dwarf_line_row){ .file = DWARF_CALL_NO_FILE };
	u->n++;
	return 0;
}

static void want_dwo(struct dwarf_lookup *d)
{
	_cleanup_free_ char *path = dwarf_top_dwo_path(&d->u.top);

	if (d->want && path)
		d->want(d->ctx, d->u.top.root.id, path);
}

/* Find the split unit in the .dwp or one of the .dwo files; NULL = not found. */
static struct dwarf_split *find_half(struct dwarf_lookup *d)
{
	struct open_unit *u = &d->u;

	if (d->dwp.info && dwarf_split_find(&d->dwp, &u->top.root, &u->top.bases, NULL) == 0)
		return &d->dwp;
	for (size_t i = 0; i < d->o.n_dwos; i++) {
		if (d->o.dwos[i].id != u->top.root.id || !d->o.dwos[i].file)
			continue;
		dwarf_split_close(&d->dwo);
		if (dwarf_split_open(&d->dwo, d->o.dwos[i].file, false, d->o.max_bytes, NULL) == 0 &&
			dwarf_split_find(&d->dwo, &u->top.root, &u->top.bases, NULL) == 0)
			return &d->dwo;
	}
	return NULL;
}

/* Read the split unit in place of a skeleton. If it is missing, the skeleton may have some entries itself. */
static void join_half(struct dwarf_lookup *d)
{
	struct open_unit *u = &d->u;
	struct dwarf_split *h;

	if (!dwarf_top_is_skeleton(&u->top))
		return;
	h = find_half(d);
	if (!h) {
		u->error = -ENOENT;
		want_dwo(d);
		return;
	}
	u->unit = u->top.bases.unit;
	u->names = &h->names;
}

/* Read the unit's lines. If this fails, its functions are still reported. */
static void read_lines(struct dwarf_lookup *d)
{
	struct open_unit *u = &d->u;
	struct err one = { 0 };
	uint64_t from = now_ns();
	int rc;

	if (!d->o.lines)
		return;
	rc = dwarf_top_lines(&u->top, &u->line, &one);
	if (!rc && u->line)
		rc = dwarf_line_run(u->line, u->addrs, u->n, u->rows, &one);
	if (rc)
		message(d, &one);
	u->lines_error = rc;
	d->stats.ns_lines += now_ns() - from;
}

static int walk(struct dwarf_lookup *d, bool thorough, struct err *e)
{
	struct open_unit *u = &d->u;
	int rc;

	d->walk.bases = &u->top.bases;
	d->walk.table = u->table;
	d->walk.addrs = u->addrs;
	d->walk.n = u->n;
	d->walk.places = u->places;
	d->walk.thorough = thorough;
	rc = dwarf_walk_run(&d->walk, e);
	note_peak(d);
	u->calls.names = u->names;
	u->calls.info = u->top.bases.info;
	u->calls.unit = u->unit;
	u->calls.table = u->table;
	u->calls.bytes = d->walk.unit;
	if (dwarf_call_table_reset(&u->calls, d->walk.n_nodes) == 0)
		return rc;
	for (size_t i = 0; i < u->n; i++)
		u->places[i].node = DWARF_WALK_NONE;
	return err_nomem(e, "a unit of debug information");
}

/* Deliver what was found. Addresses without a function that are not padding between functions remain. */
static void report_found(struct dwarf_lookup *d)
{
	struct open_unit *u = &d->u;
	size_t left = 0;

	for (size_t i = 0; i < u->n; i++) {
		if (u->places[i].node != DWARF_WALK_NONE || u->places[i].padding) {
			report(d, i, 0);
			continue;
		}
		u->index[left] = u->index[i];
		u->addrs[left] = u->addrs[i];
		u->rows[left] = u->rows[i];
		u->places[left++] = u->places[i];
	}
	u->n = left;
}

static int read_unit(struct dwarf_lookup *d, struct err *e)
{
	struct open_unit *u = &d->u;
	uint64_t len = u->unit->end - u->unit->at;
	int rc;

	if (len > d->o.max_bytes || len > UINT32_MAX)
		return err_set(e, -ENOMEM, "a unit of debug information is larger than the limit");
	rc = dwarf_info_table(u->top.bases.info, u->unit, true, &u->table, e);
	if (!rc)
		rc = dwarf_sections_read(
			u->top.bases.info->sect, DWARF_SECTION_INFO, u->unit->at, len, &d->piece, e);
	if (!rc && d->piece.len < len)
		rc = err_set(e, -EINVAL, "a unit of debug information is cut short");
	d->walk.unit = rd_init(d->piece.bytes, d->piece.len);
	return rc;
}

static void search_unit(struct dwarf_lookup *d, struct dwarf_unit *unit)
{
	struct open_unit *u = &d->u;
	struct err one = { 0 };
	int rc;

	dwarf_line_close(TAKE_PTR(u->line));
	u->unit = unit;
	u->names = &d->names;
	u->error = u->lines_error = 0;
	rc = dwarf_top_read(&u->top, d->info, d->alt, unit, d->lowest, &one);
	d->stats.units_read++;
	if (!rc) {
		read_lines(d);
		join_half(d);
		rc = read_unit(d, &one);
	}
	if (!rc) {
		rc = walk(d, false, &one);
		report_found(d);
	}
	if (!rc && d->u.n)
		rc = walk(d, true, &one);
	if (rc)
		message(d, &one);
	for (size_t i = 0; i < u->n; i++)
		report(d, i, rc);
}

/* --- all of them --- */

static int search_planned(struct dwarf_lookup *d)
{
	const struct dwarf_plan *p = &d->plan;

	for (size_t i = 0; i < p->n_parts;) {
		uint32_t unit = p->parts[i].unit;

		d->u.n = 0;
		for (; i < p->n_parts && p->parts[i].unit == unit; i++)
			for (uint32_t k = p->parts[i].from; k < p->parts[i].to; k++)
				if (add_addr(d, k) != 0)
					return -ENOMEM;
		search_unit(d, &d->info->units[unit]);
	}
	return 0;
}

/* Units that do not say where their code is get the addresses that no other unit claims. */
static int search_open(struct dwarf_lookup *d, const uint32_t *unclaimed, size_t n)
{
	const struct dwarf_plan *p = &d->plan;

	for (size_t k = 0; k < n; k++)
		d->plan.covers[unclaimed[k]] = (uint32_t)p->n_open;
	for (size_t i = 0; i < p->n_open && n; i++) {
		d->u.n = 0;
		for (size_t k = 0; k < n; k++)
			if (add_addr(d, unclaimed[k]) != 0)
				return -ENOMEM;
		search_unit(d, &d->info->units[p->open[i]]);
	}
	return 0;
}

static int search_units(struct dwarf_lookup *d)
{
	_cleanup_free_ uint32_t *unclaimed = calloc(d->n + 1, sizeof(*unclaimed));
	size_t n = 0;
	int rc;

	if (!unclaimed)
		return -ENOMEM;
	for (size_t i = 0; i < d->n; i++)
		if (!d->plan.covers[i])
			unclaimed[n++] = (uint32_t)i;
	rc = search_planned(d);
	return rc ? rc : search_open(d, unclaimed, n);
}

static int plan(struct dwarf_lookup *d)
{
	struct err one = { 0 };
	uint64_t bad = 0;
	int rc;

	dwarf_plan_free(&d->plan);
	rc = dwarf_plan_make(&d->plan, d->info, d->lowest, d->vaddrs, d->n, &bad, &one);
	if (!rc && bad)
		message(d, &one);
	return rc;
}

int dwarf_lookup_run(struct dwarf_lookup *d, const uint64_t *vaddrs, size_t n, dwarf_lookup_sink *sink,
	dwarf_lookup_want *want, void *ctx, struct err *e)
{
	uint64_t from = now_ns(), lines = d->stats.ns_lines;
	int rc;

	d->vaddrs = vaddrs;
	d->n = n;
	d->sink = sink;
	d->want = want;
	d->ctx = ctx;
	d->e = e;
	d->reported = false;
	d->walk.marks_left = MARKS_MIN + MARKS_EACH * (uint64_t)n;
	d->held = calloc(n + 1, sizeof(struct dwarf_hit_held *));
	rc = d->held ? plan(d) : -ENOMEM;
	rc = rc ? rc : search_units(d);
	for (size_t i = 0; d->held && i < n; i++)
		dwarf_hit_offer(&d->held[i], NULL, 0, true, sink, ctx);
	free(TAKE_PTR(d->held));
	note_peak(d);
	d->stats.entries = d->walk.entries;
	d->stats.ns_units += now_ns() - from - (d->stats.ns_lines - lines);
	return rc ? err_nomem(e, "debug information") : 0;
}
