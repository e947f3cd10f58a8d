/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwinfo.h"

#include <dwarf.h>
#include <errno.h>

#define TABLES 64
#define TABLE_MAX (UINT64_C(16) << 20) /* bytes of one abbreviation table */
#define TABLES_BYTES_MAX (UINT64_C(32) << 20)
#define WINDOW (UINT64_C(64) << 10)
#define HEAD_MAX 40
#define BUDGET_MIN (UINT64_C(64) << 20)

struct dwinfo_table {
	uint64_t at;
	struct dwshape shape;
	bool used, pinned;
	uint64_t last; /* when it was asked for */
	struct dwabbrev_table table;
};

/* --- heads --- */

static bool shape_ok(const struct dwshape *s)
{
	return s->version >= 2 && s->version <= 5 &&
	       (s->addr_size == 8 || s->addr_size == 4 || s->addr_size == 2 || s->addr_size == 1);
}

static void head_of_5(struct rd *r, struct dwunit *u)
{
	u->type = rd_u8(r);
	u->shape.addr_size = rd_u8(r);
	u->abbrev = rd_fixed(r, u->shape.offset_size);
	if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
		u->id = rd_u64(r);
	if (u->type == DW_UT_type || u->type == DW_UT_split_type)
		rd_bytes(r, 8U + u->shape.offset_size);
}

/* The head at R, whose first byte is at offset AT; false where it makes no sense. */
static bool parse_head(struct rd *r, uint64_t at, uint64_t size, struct dwunit *u)
{
	const uint8_t *from = r->p;
	uint64_t len = rd_u32(r);

	*u = (struct dwunit){ .at = at, .str_base = DWINFO_UNKNOWN, .type = DW_UT_compile };
	u->shape.offset_size = 4;
	if (len == UINT32_MAX) {
		len = rd_u64(r);
		u->shape.offset_size = 8;
	}
	if (r->bad || len > size - at - (uint64_t)(r->p - from))
		return false;
	u->end = at + (uint64_t)(r->p - from) + len;
	u->shape.version = rd_u16(r);
	if (u->shape.version >= 5) {
		head_of_5(r, u);
	} else {
		u->abbrev = rd_fixed(r, u->shape.offset_size);
		u->shape.addr_size = rd_u8(r);
	}
	u->first = (uint8_t)(r->p - from);
	return !r->bad && at + u->first <= u->end;
}

static int add_unit(struct dwinfo *d, const struct dwunit *u, struct err *e)
{
	if (base_grow(&d->units, &d->cap, d->n + 1, sizeof(*d->units)) != 0)
		return err_nomem(e, "the units of debug information");
	d->units[d->n++] = *u;
	return 0;
}

/* Units of a version that is not known are passed over: their length is told all the same. */
static int scan_heads(struct dwinfo *d, struct err *e)
{
	uint64_t size = dwsect_size(d->sect, DWSECT_INFO), at = 0;
	struct dwunit u;
	int rc = 0;

	while (at < size && !rc) {
		struct rd r;

		rc = dwsect_read(d->sect, DWSECT_INFO, at, HEAD_MAX, &d->root, e);
		if (rc)
			break;
		r = rd_init(d->root.bytes, d->root.len);
		if (!parse_head(&r, at, size, &u)) {
			rc = err_set(e, -EINVAL, "the unit of debug information at 0x%llx makes no sense",
				(unsigned long long)at);
			break;
		}
		if (shape_ok(&u.shape) && u.type != DW_UT_type && u.type != DW_UT_split_type)
			rc = add_unit(d, &u, e);
		at = u.end;
	}
	return rc == -EINVAL && d->n ? 0 : rc;
}

static uint64_t budget(struct dwinfo *d, enum dwsect_id id)
{
	return BUDGET_MIN + 16 * dwsect_size(d->sect, id);
}

int dwinfo_open(const struct elffile *f, bool dwo, uint64_t max_bytes, struct dwinfo **ret, struct err *e)
{
	struct dwinfo *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return err_nomem(e, "debug information");
	d->dwo = dwo;
	d->tables = calloc(TABLES, sizeof(*d->tables));
	rc = d->tables ? dwsect_open(f, dwo, max_bytes, &d->sect, e) : err_nomem(e, "debug information");
	if (!rc && !dwsect_size(d->sect, DWSECT_INFO))
		rc = err_set(e, -ENOENT, "there is no debug information");
	if (!rc) {
		d->abbrev_left = budget(d, DWSECT_ABBREV);
		d->lists_left = budget(d, DWSECT_RANGES) + budget(d, DWSECT_RNGLISTS);
		rc = scan_heads(d, e);
	}
	if (rc) {
		dwinfo_close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

void dwinfo_close(struct dwinfo *d)
{
	if (!d)
		return;
	for (size_t i = 0; d->tables && i < TABLES; i++)
		dwabbrev_release(&d->tables[i].table);
	free(d->tables);
	free(d->units);
	dwpiece_free(&d->root);
	for (size_t i = 0; i < DWSECT_COUNT; i++)
		dwpiece_free(&d->windows[i]);
	dwsect_close(d->sect);
	free(d);
}

struct dwunit *dwinfo_unit(const struct dwinfo *d, uint64_t at)
{
	size_t lo = 0, hi = d->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (d->units[mid].end <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < d->n && d->units[lo].at <= at ? &d->units[lo] : NULL;
}

bool dwinfo_window(struct dwinfo *d, enum dwsect_id id, uint64_t at, size_t min, struct rd *ret)
{
	struct dwpiece *p = &d->windows[id];
	uint64_t size = dwsect_size(d->sect, id);

	if (at >= size)
		return false;
	if (!p->len || at < p->at || at - p->at >= p->len || p->len - (at - p->at) < MIN(min, size - at))
		if (dwsect_read(d->sect, id, at, MAX(min, WINDOW), p, NULL) != 0) {
			p->len = 0;
			return false;
		}
	*ret = rd_init(p->bytes + (at - p->at), p->len - (size_t)(at - p->at));
	return true;
}

/* --- abbreviation tables --- */

/* Parse what is at U's offset, from ever more bytes until it ends within them. */
static int parse_table(
	struct dwinfo *d, const struct dwunit *u, uint64_t code, struct dwabbrev_table *ret, struct err *e)
{
	for (uint64_t want = code ? 512 : 16384; want <= TABLE_MAX; want *= 8) {
		struct rd r;
		size_t used;
		int rc;

		if (!dwinfo_window(d, DWSECT_ABBREV, u->abbrev, want, &r))
			return err_set(e, -EINVAL, "an abbreviation table lies outside its section");
		rc = dwabbrev_parse(r.p, rd_left(&r), &u->shape, code, ret, &used, e);
		if (used > d->abbrev_left) {
			dwabbrev_release(ret);
			return err_set(e, -EINVAL, "abbreviation tables overlap without measure");
		}
		d->abbrev_left -= used;
		if (rc != -ENODATA)
			return rc;
		if (rd_left(&r) >= dwsect_size(d->sect, DWSECT_ABBREV) - u->abbrev)
			break;
	}
	return err_set(e, -EINVAL, "an abbreviation table has no end");
}

static bool same_table(const struct dwinfo_table *t, const struct dwunit *u)
{
	return t->used && t->at == u->abbrev && t->shape.version == u->shape.version &&
	       t->shape.addr_size == u->shape.addr_size && t->shape.offset_size == u->shape.offset_size;
}

static void drop_table(struct dwinfo *d, struct dwinfo_table *t)
{
	d->tables_bytes -= dwabbrev_bytes(&t->table);
	dwabbrev_release(&t->table);
	t->used = false;
}

/* A free place: the table that was not asked for the longest time goes, more of them while they are too
 * large.
 */
static struct dwinfo_table *make_place(struct dwinfo *d)
{
	for (;;) {
		struct dwinfo_table *oldest = NULL, *empty = NULL;

		for (size_t i = 0; i < TABLES; i++) {
			struct dwinfo_table *t = &d->tables[i];

			if (!t->used)
				empty = t;
			else if (!t->pinned && (!oldest || t->last < oldest->last))
				oldest = t;
		}
		if (empty && (!oldest || d->tables_bytes < TABLES_BYTES_MAX))
			return empty;
		drop_table(d, oldest);
	}
}

static struct dwinfo_table *pin_only(struct dwinfo *d, struct dwinfo_table *table)
{
	for (size_t i = 0; i < TABLES; i++)
		d->tables[i].pinned = false;
	table->pinned = true;
	return table;
}

int dwinfo_table(
	struct dwinfo *d, const struct dwunit *u, bool pin, const struct dwabbrev_table **ret, struct err *e)
{
	struct dwabbrev_table parsed;
	struct dwinfo_table *t = NULL;
	int rc;

	for (size_t i = 0; i < TABLES && !t; i++)
		if (same_table(&d->tables[i], u))
			t = &d->tables[i];
	if (!t) {
		rc = parse_table(d, u, 0, &parsed, e);
		if (rc)
			return rc;
		t = make_place(d);
		*t = (struct dwinfo_table){
			.at = u->abbrev, .shape = u->shape, .used = true, .table = parsed
		};
		d->tables_bytes += dwabbrev_bytes(&parsed);
	}
	t->last = ++d->clock;
	if (pin)
		pin_only(d, t);
	*ret = &t->table;
	return 0;
}

bool dwinfo_has_functions(struct dwinfo *d, const struct dwunit *u)
{
	const struct dwabbrev_table *t;

	return dwinfo_table(d, u, false, &t, NULL) != 0 || t->functions;
}

/* --- the first entry --- */

static void note_attr(struct dwroot *root, uint16_t name, const struct dwvalue *v)
{
	switch (name) {
	case DW_AT_low_pc:
		root->low = *v;
		break;
	case DW_AT_high_pc:
		root->high = *v;
		break;
	case DW_AT_ranges:
		root->ranges = *v;
		break;
	case DW_AT_name:
		root->name = *v;
		break;
	case DW_AT_comp_dir:
		root->comp_dir = *v;
		break;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		root->dwo_name = *v;
		break;
	case DW_AT_stmt_list:
		root->lines = v->u;
		break;
	case DW_AT_GNU_dwo_id:
		root->id = v->u;
		break;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		root->addr_base = v->u;
		break;
	case DW_AT_str_offsets_base:
		root->str_base = v->u;
		break;
	case DW_AT_rnglists_base:
		root->lists_base = v->u;
		break;
	case DW_AT_GNU_ranges_base:
		root->ranges_base = v->u;
		break;
	default:
		break;
	}
}

static bool parse_root(const struct dwabbrev_table *t, const struct dwunit *u, uint64_t code, struct rd *r,
	struct dwroot *root)
{
	const struct dwabbrev *a = dwabbrev_find(t, code);

	if (!a)
		return false;
	*root = (struct dwroot){ .lines = DWINFO_UNKNOWN,
		.id = u->id,
		.addr_base = DWINFO_UNKNOWN,
		.str_base = DWINFO_UNKNOWN,
		.lists_base = DWINFO_UNKNOWN,
		.ranges_base = DWINFO_UNKNOWN,
		.tag = a->tag,
		.children = a->children };
	for (uint32_t i = 0; i < a->n_attrs && !r->bad; i++) {
		const struct dwabbrev_attr *at = &t->attrs[a->attrs + i];
		struct dwvalue v = dwform_read(r, at->form, at->implicit, &u->shape);

		note_attr(root, at->name, &v);
	}
	return !r->bad;
}

int dwinfo_root(struct dwinfo *d, const struct dwunit *u, struct dwroot *ret, struct err *e)
{
	uint64_t at = u->at + u->first, len = u->end - at;

	*ret = (struct dwroot){ 0 };
	for (uint64_t want = 512;; want *= 16) {
		struct dwabbrev_table t;
		struct rd r;
		uint64_t code;
		bool ok;
		int rc = dwsect_read(d->sect, DWSECT_INFO, at, MIN(want, len), &d->root, e);

		if (rc)
			return rc;
		r = rd_init(d->root.bytes, d->root.len);
		code = rd_uleb(&r);
		if (r.bad || !code)
			return err_set(e, -EINVAL, "a unit of debug information has no entry");
		rc = parse_table(d, u, code, &t, e);
		if (rc)
			return rc;
		ok = parse_root(&t, u, code, &r, ret);
		dwabbrev_release(&t);
		if (ok)
			return 0;
		if (want >= len || want > TABLE_MAX)
			return err_set(e, -EINVAL, "the first entry of a unit is malformed");
	}
}

/* --- what values refer to --- */

/* Entry INDEX of SIZE bytes of the table at BASE. */
static bool indexed(
	struct dwinfo *d, enum dwsect_id id, uint64_t base, uint64_t index, uint8_t size, uint64_t *ret)
{
	struct rd r;

	if (index > UINT32_MAX || base > UINT64_MAX / 2 ||
		!dwinfo_window(d, id, base + index * size, size, &r))
		return false;
	*ret = rd_fixed(&r, size);
	return !r.bad;
}

bool dwinfo_address(struct dwinfo *d, uint64_t base, uint64_t index, uint8_t addr_size, uint64_t *ret)
{
	return indexed(d, DWSECT_ADDR, base, index, addr_size, ret);
}

/* Where it is not told: behind the head of the section, which split DWARF before version 5 has none of. */
static uint64_t str_base(struct dwinfo *d, struct dwunit *u)
{
	struct dwroot root;

	if (u->str_base != DWINFO_UNKNOWN)
		return u->str_base;
	u->str_base = u->shape.version < 5 ? 0 : u->shape.offset_size * UINT64_C(2);
	if (!d->dwo && dwinfo_root(d, u, &root, NULL) == 0 && root.str_base != DWINFO_UNKNOWN)
		u->str_base = root.str_base;
	return u->str_base;
}

const char *dwinfo_text(struct dwinfo *d, struct dwinfo *alt, struct dwunit *u, const struct dwvalue *v)
{
	uint64_t at;

	switch (v->kind) {
	case DWV_TEXT:
		return v->text;
	case DWV_STRP:
		return dwsect_string(d->sect, DWSECT_STR, v->u);
	case DWV_LINE_STRP:
		return dwsect_string(d->sect, DWSECT_LINE_STR, v->u);
	case DWV_STRP_ALT:
		return alt ? dwsect_string(alt->sect, DWSECT_STR, v->u) : NULL;
	case DWV_STRX:
		if (!indexed(d, DWSECT_STR_OFFSETS, str_base(d, u), v->u, u->shape.offset_size, &at))
			return NULL;
		return dwsect_string(d->sect, DWSECT_STR, at);
	default:
		return NULL;
	}
}

uint64_t dwinfo_bytes(const struct dwinfo *d)
{
	uint64_t sum = dwsect_bytes(d->sect) + d->tables_bytes + d->cap * sizeof(*d->units) + d->root.cap;

	for (size_t i = 0; i < DWSECT_COUNT; i++)
		sum += d->windows[i].cap;
	return sum;
}
