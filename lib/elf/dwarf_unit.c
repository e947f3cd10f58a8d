/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwarf_unit.h"
#include "base/search.h"

#include <dwarf.h>
#include <errno.h>

/* How to skip a value of variable size. */
enum dwarf_skip {
	DWARF_SKIP_FIXED, /* a fixed size */
	DWARF_SKIP_LEB,
	DWARF_SKIP_STRING,
	DWARF_SKIP_BLOCK1,
	DWARF_SKIP_BLOCK2,
	DWARF_SKIP_BLOCK4,
	DWARF_SKIP_BLOCK, /* the length is a ULEB128 */
	DWARF_SKIP_INDIRECT, /* the form precedes the value */
	DWARF_SKIP_UNKNOWN,
};

static enum dwarf_skip fixed(uint32_t n, uint32_t *size)
{
	*size = n;
	return DWARF_SKIP_FIXED;
}

/* Sets *SIZE if it returns DWARF_SKIP_FIXED. */
static enum dwarf_skip dwarf_form_skip_of(uint16_t form, const struct dwarf_shape *shape, uint32_t *size)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return fixed(0, size);
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return fixed(1, size);
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return fixed(2, size);
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return fixed(3, size);
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
		return fixed(4, size);
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return fixed(8, size);
	case DW_FORM_data16:
		return fixed(16, size);
	case DW_FORM_addr:
		return fixed(shape->addr_size, size);
	case DW_FORM_ref_addr: /* as wide as an address only in DWARF 2 */
		return fixed(shape->version == 2 ? shape->addr_size : shape->offset_size, size);
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return fixed(shape->offset_size, size);
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return DWARF_SKIP_LEB;
	case DW_FORM_string:
		return DWARF_SKIP_STRING;
	case DW_FORM_block1:
		return DWARF_SKIP_BLOCK1;
	case DW_FORM_block2:
		return DWARF_SKIP_BLOCK2;
	case DW_FORM_block4:
		return DWARF_SKIP_BLOCK4;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		return DWARF_SKIP_BLOCK;
	case DW_FORM_indirect:
		return DWARF_SKIP_INDIRECT;
	default:
		return DWARF_SKIP_UNKNOWN;
	}
}

static enum dwarf_value_kind kind_of(uint16_t form)
{
	switch (form) {
	case DW_FORM_addr:
		return DWARF_VALUE_ADDR;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return DWARF_VALUE_ADDRX;
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
	case DW_FORM_flag:
	case DW_FORM_flag_present:
		return DWARF_VALUE_CONST;
	case DW_FORM_sec_offset:
		return DWARF_VALUE_OFFSET;
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
		return DWARF_VALUE_LISTX;
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		return DWARF_VALUE_REF;
	case DW_FORM_ref_addr:
		return DWARF_VALUE_REF_INFO;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		return DWARF_VALUE_REF_ALT;
	case DW_FORM_strp:
		return DWARF_VALUE_STRP;
	case DW_FORM_line_strp:
		return DWARF_VALUE_LINE_STRP;
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
		return DWARF_VALUE_STRP_ALT;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return DWARF_VALUE_STRX;
	default:
		return DWARF_VALUE_NONE;
	}
}

static struct dwarf_value text_at(struct rd *r)
{
	const uint8_t *from = r->p, *nul = r->bad ? NULL : memchr(from, 0, rd_left(r));

	if (!nul) {
		r->bad = true;
		return (struct dwarf_value){ 0 };
	}
	r->p = nul + 1;
	return (struct dwarf_value){ .kind = DWARF_VALUE_TEXT, .text = (const char *)from };
}

static struct dwarf_value block_of(struct rd *r, uint64_t len)
{
	rd_bytes(r, len);
	return (struct dwarf_value){ .kind = DWARF_VALUE_NONE };
}

struct dwarf_value dwarf_form_read(
	struct rd *r, uint16_t form, int64_t implicit, const struct dwarf_shape *shape)
{
	struct dwarf_value v = { .kind = kind_of(form) };
	uint32_t size = 0;
	uint64_t inner;

	switch (dwarf_form_skip_of(form, shape, &size)) {
	case DWARF_SKIP_FIXED:
		if (size > 8) {
			rd_bytes(r, size);
			return v;
		}
		v.u = form == DW_FORM_implicit_const ? (uint64_t)implicit
		      : form == DW_FORM_flag_present ? 1
						     : rd_fixed(r, size);
		return v;
	case DWARF_SKIP_LEB:
		v.u = form == DW_FORM_sdata ? (uint64_t)rd_sleb(r) : rd_uleb(r);
		return v;
	case DWARF_SKIP_STRING:
		return text_at(r);
	case DWARF_SKIP_BLOCK1:
		return block_of(r, rd_u8(r));
	case DWARF_SKIP_BLOCK2:
		return block_of(r, rd_u16(r));
	case DWARF_SKIP_BLOCK4:
		return block_of(r, rd_u32(r));
	case DWARF_SKIP_BLOCK:
		return block_of(r, rd_uleb(r));
	case DWARF_SKIP_INDIRECT:
		inner = rd_uleb(r);
		/* one level only: a chain could be endless, and DW_FORM_implicit_const has no value here */
		if (inner <= UINT16_MAX && inner != DW_FORM_indirect && inner != DW_FORM_implicit_const)
			return dwarf_form_read(r, (uint16_t)inner, 0, shape);
		break;
	case DWARF_SKIP_UNKNOWN:
		break;
	}
	r->bad = true;
	return (struct dwarf_value){ 0 };
}

#define DWARF_ABBREV_VARIES UINT32_MAX

#define VALUES_MAX (UINT32_MAX / 2) /* bytes of one entry */

static void dwarf_abbrev_release(struct dwarf_abbrev_table *t);

static enum dwarf_abbrev_kind entry_kind(uint64_t tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
		return DWK_FUNCTION;
	case DW_TAG_inlined_subroutine:
		return DWK_INLINED;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return DWK_BLOCK;
	case DW_TAG_compile_unit:
	case DW_TAG_partial_unit:
	case DW_TAG_skeleton_unit:
	case DW_TAG_namespace:
	case DW_TAG_module:
		return DWK_THROUGH;
	default:
		return DWK_OTHER;
	}
}

/* --- positions of values --- */

static void note_place(struct dwarf_abbrev *a, uint16_t name, uint32_t attr, uint32_t step, uint32_t add)
{
	struct dwarf_abbrev_place *p = name == DW_AT_sibling   ? &a->sibling
				       : name == DW_AT_low_pc  ? &a->low_pc
				       : name == DW_AT_high_pc ? &a->high_pc
				       : name == DW_AT_ranges  ? &a->ranges
							       : NULL;

	if (p && attr < DWARF_ABBREV_NONE && step < UINT16_MAX)
		*p = (struct dwarf_abbrev_place){
			.attr = (uint16_t)attr, .step = (uint16_t)step, .add = add
		};
}

static int add_step(struct dwarf_abbrev_table *t, uint32_t add, enum dwarf_skip skip, struct err *e)
{
	if (base_grow(&t->steps, &t->steps_cap, t->n_steps + 1, sizeof(*t->steps)) != 0)
		return err_nomem(e, "an abbreviation table");
	t->steps[t->n_steps++] = (struct dwarf_abbrev_step){ .add = add, .skip = skip };
	return 0;
}

/* Compute the steps and places of the last abbreviation. */
static int compile(
	struct dwarf_abbrev_table *t, struct dwarf_abbrev *a, const struct dwarf_shape *shape, struct err *e)
{
	uint32_t pending = 0, step = 0;
	int rc;

	a->sibling.attr = a->low_pc.attr = a->high_pc.attr = a->ranges.attr = DWARF_ABBREV_NONE;
	a->steps = (uint32_t)t->n_steps;
	for (uint32_t i = 0; i < a->n_attrs; i++) {
		const struct dwarf_abbrev_attr *at = &t->attrs[a->attrs + i];
		uint32_t size = 0;
		enum dwarf_skip skip = dwarf_form_skip_of(at->form, shape, &size);

		if (skip == DWARF_SKIP_UNKNOWN)
			return err_set(e, -EINVAL, "an attribute has the unknown form 0x%x", at->form);
		note_place(a, at->name, i, step, pending);
		pending += size;
		if (pending > VALUES_MAX)
			return err_set(e, -EINVAL, "an abbreviation is too long");
		if (skip == DWARF_SKIP_FIXED)
			continue;
		rc = add_step(t, pending, skip, e);
		if (rc)
			return rc;
		pending = 0;
		step++;
	}
	a->size = step ? DWARF_ABBREV_VARIES : pending;
	a->code_range = dwarf_abbrev_has(&a->low_pc) || dwarf_abbrev_has(&a->ranges);
	return add_step(t, pending, DWARF_SKIP_FIXED, e);
}

/* --- parsing --- */

/* Parse one attribute. Returns 1, or 0 at the end of the list. */
static int parse_attr(struct rd *r, struct dwarf_abbrev_attr *at)
{
	uint64_t name = rd_uleb(r), form = rd_uleb(r);

	if (r->bad)
		return -ENODATA;
	if (!name && !form)
		return 0;
	if (name > UINT16_MAX)
		name = 0; /* not one that is used */
	at->name = (uint16_t)name;
	at->form = form > UINT16_MAX ? 0 : (uint16_t)form;
	at->implicit = form == DW_FORM_implicit_const ? rd_sleb(r) : 0;
	return r->bad ? -ENODATA : 1;
}

static int parse_attrs(struct rd *r, struct dwarf_abbrev_table *t, struct dwarf_abbrev *a, struct err *e)
{
	struct dwarf_abbrev_attr at;
	int rc;

	a->attrs = (uint32_t)t->n_attrs;
	while ((rc = parse_attr(r, &at)) == 1) {
		if (base_grow(&t->attrs, &t->attrs_cap, t->n_attrs + 1, sizeof(*t->attrs)) != 0)
			return err_nomem(e, "an abbreviation table");
		t->attrs[t->n_attrs++] = at;
	}
	a->n_attrs = (uint32_t)t->n_attrs - a->attrs;
	return rc ? err_set(e, rc, "an abbreviation table breaks off") : 0;
}

static int parse_one(struct rd *r, struct dwarf_abbrev_table *t, uint64_t code,
	const struct dwarf_shape *shape, struct err *e)
{
	uint64_t tag = rd_uleb(r);
	struct dwarf_abbrev a = { .code = code, .kind = (uint8_t)entry_kind(tag) };
	int rc;

	a.tag = tag > UINT16_MAX ? 0 : (uint16_t)tag;
	a.children = rd_u8(r);
	rc = parse_attrs(r, t, &a, e);
	rc = rc ? rc : compile(t, &a, shape, e);
	if (rc)
		return rc;
	if (base_grow(&t->list, &t->cap, t->n + 1, sizeof(*t->list)) != 0)
		return err_nomem(e, "an abbreviation table");
	t->list[t->n++] = a;
	t->functions |= a.kind == DWK_FUNCTION && a.code_range;
	return 0;
}

static int by_code(const void *a, const void *b)
{
	const struct dwarf_abbrev *x = a, *y = b;

	return CMP(x->code, y->code);
}

static int parse_all(struct rd *r, struct dwarf_abbrev_table *t, const struct dwarf_shape *shape,
	uint64_t until, struct err *e)
{
	uint64_t code = 0;
	bool sorted = true;

	t->dense = true;
	while (!until || code != until) {
		int rc;

		code = rd_uleb(r);
		if (r->bad)
			return err_set(e, -ENODATA, "an abbreviation table has no end");
		if (!code)
			break;
		t->dense = t->dense && code == t->n + 1;
		sorted = sorted && (!t->n || code > t->list[t->n - 1].code);
		rc = parse_one(r, t, code, shape, e);
		if (rc)
			return rc;
	}
	if (!sorted)
		qsort(t->list, t->n, sizeof(*t->list), by_code);
	return 0;
}

/*
 * Parse the table at P, of up to LEN bytes; with CODE only up to that
 * abbreviation. -EINVAL if it is malformed, -ENODATA if it does not end within
 * LEN, -ENOMEM. Uses at most about 60 times the memory of the bytes. *USED (may
 * be NULL) is the number of bytes parsed.
 */
static int dwarf_abbrev_parse(const void *p, size_t len, const struct dwarf_shape *shape, uint64_t code,
	struct dwarf_abbrev_table *ret, size_t *used, struct err *e)
{
	struct rd r = rd_init(p, len);
	int rc;

	*ret = (struct dwarf_abbrev_table){ 0 };
	rc = parse_all(&r, ret, shape, code, e);
	if (rc)
		dwarf_abbrev_release(ret);
	if (used)
		*used = len - rd_left(&r);
	return rc;
}

static void dwarf_abbrev_release(struct dwarf_abbrev_table *t)
{
	free(t->list);
	free(t->attrs);
	free(t->steps);
	*t = (struct dwarf_abbrev_table){ 0 };
}

static size_t dwarf_abbrev_bytes(const struct dwarf_abbrev_table *t)
{
	return t->cap * sizeof(*t->list) + t->attrs_cap * sizeof(*t->attrs) +
	       t->steps_cap * sizeof(*t->steps);
}

const struct dwarf_abbrev *dwarf_abbrev_search(const struct dwarf_abbrev_table *t, uint64_t code)
{
	const struct dwarf_abbrev key = { .code = code };

	return t->n ? bsearch(&key, t->list, t->n, sizeof(*t->list), by_code) : NULL;
}

/* --- skipping --- */

/* Read the length of a block; SKIP gives its width. */
static uint64_t block_len(struct rd *r, uint32_t skip)
{
	switch (skip) {
	case DWARF_SKIP_BLOCK1:
		return rd_u8(r);
	case DWARF_SKIP_BLOCK2:
		return rd_u16(r);
	case DWARF_SKIP_BLOCK4:
		return rd_u32(r);
	default:
		return rd_uleb(r);
	}
}

/* The NUL behind the bytes ends numbers and strings, so this stops at most one byte behind the end. */
static const uint8_t *skip_value(
	const uint8_t *p, const uint8_t *end, uint32_t skip, const struct dwarf_shape *shape)
{
	struct rd r = { .p = p, .end = end };

	switch (skip) {
	case DWARF_SKIP_LEB:
		while (*p & 0x80)
			p++;
		return p + 1;
	case DWARF_SKIP_STRING:
		return p + strlen((const char *)p) + 1;
	case DWARF_SKIP_INDIRECT:
		dwarf_form_read(&r, DW_FORM_indirect, 0, shape);
		break;
	default:
		rd_bytes(&r, block_len(&r, skip));
	}
	return r.bad ? end + 1 : r.p;
}

/* Skip LIMIT steps and the bytes before the next one. */
static void step(
	const struct dwarf_abbrev_step *s, uint32_t limit, const struct dwarf_shape *shape, struct rd *r)
{
	const uint8_t *p = r->p, *end = r->end;

	for (;; s++, limit--) {
		if (s->add > (size_t)(end - p))
			break;
		if (s->skip == DWARF_SKIP_FIXED || !limit) {
			r->p = limit ? p + s->add : p;
			return;
		}
		p = skip_value(p + s->add, end, s->skip, shape);
		if (p > end)
			break;
	}
	r->p = end;
	r->bad = true;
}

void dwarf_abbrev_step_slow(const struct dwarf_abbrev_table *t, const struct dwarf_abbrev *a,
	const struct dwarf_shape *shape, struct rd *r)
{
	step(&t->steps[a->steps], UINT32_MAX, shape, r);
}

struct dwarf_value dwarf_abbrev_value(const struct dwarf_abbrev_table *t, const struct dwarf_abbrev *a,
	const struct dwarf_abbrev_place *place, const struct dwarf_shape *shape, const struct rd *r)
{
	struct dwarf_value v = { .kind = DWARF_VALUE_NONE };
	struct rd at = *r;

	if (!dwarf_abbrev_has(place))
		return v;
	if (place->step)
		step(&t->steps[a->steps], place->step, shape, &at);
	rd_bytes(&at, place->add);
	if (!at.bad) {
		const struct dwarf_abbrev_attr *attr = &t->attrs[a->attrs + place->attr];

		v = dwarf_form_read(&at, attr->form, attr->implicit, shape);
	}
	if (at.bad)
		v.kind = DWARF_VALUE_NONE;
	return v;
}

#define TABLES 64
#define TABLE_MAX (UINT64_C(16) << 20) /* bytes of one abbreviation table */
#define TABLES_BYTES_MAX (UINT64_C(32) << 20)
#define WINDOW (UINT64_C(64) << 10)
#define HEAD_MAX 40
#define BUDGET_MIN (UINT64_C(64) << 20)

struct dwarf_info_table {
	uint64_t at;
	struct dwarf_shape shape;
	bool used, pinned;
	uint64_t last; /* time of the last request */
	struct dwarf_abbrev_table table;
};

/* --- heads --- */

static bool shape_ok(const struct dwarf_shape *s)
{
	return s->version >= 2 && s->version <= 5 &&
	       (s->addr_size == 8 || s->addr_size == 4 || s->addr_size == 2 || s->addr_size == 1);
}

static void head_of_5(struct rd *r, struct dwarf_unit *u)
{
	u->type = rd_u8(r);
	u->shape.addr_size = rd_u8(r);
	u->abbrev = rd_fixed(r, u->shape.offset_size);
	if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
		u->id = rd_u64(r);
	if (u->type == DW_UT_type || u->type == DW_UT_split_type)
		rd_bytes(r, 8U + u->shape.offset_size);
}

/* Parse the head at R, whose offset is AT. Returns false if it is not valid. */
static bool parse_head(struct rd *r, uint64_t at, uint64_t size, struct dwarf_unit *u)
{
	const uint8_t *from = r->p;
	uint64_t len = rd_u32(r);

	*u = (struct dwarf_unit){ .at = at, .str_base = DWARF_INFO_UNKNOWN, .type = DW_UT_compile };
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

static int add_unit(struct dwarf_info *d, const struct dwarf_unit *u, struct err *e)
{
	if (base_grow(&d->units, &d->cap, d->n + 1, sizeof(*d->units)) != 0)
		return err_nomem(e, "the units of debug information");
	d->units[d->n++] = *u;
	return 0;
}

/* Units of an unknown version are skipped; their length is known all the same. */
static int scan_heads(struct dwarf_info *d, struct err *e)
{
	uint64_t size = dwarf_sections_size(d->sect, DWARF_SECTION_INFO), at = 0;
	struct dwarf_unit u;
	int rc = 0;

	while (at < size && !rc) {
		struct rd r;

		rc = dwarf_sections_read(d->sect, DWARF_SECTION_INFO, at, HEAD_MAX, &d->root, e);
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

static uint64_t budget(struct dwarf_info *d, enum dwarf_section_id id)
{
	return BUDGET_MIN + 16 * dwarf_sections_size(d->sect, id);
}

int dwarf_info_open(
	const struct elffile *f, bool dwo, uint64_t max_bytes, struct dwarf_info **ret, struct err *e)
{
	struct dwarf_info *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return err_nomem(e, "debug information");
	d->dwo = dwo;
	d->tables = calloc(TABLES, sizeof(*d->tables));
	rc = d->tables ? dwarf_sections_open(f, dwo, max_bytes, &d->sect, e)
		       : err_nomem(e, "debug information");
	if (!rc && !dwarf_sections_size(d->sect, DWARF_SECTION_INFO))
		rc = err_set(e, -ENOENT, "there is no debug information");
	if (!rc) {
		d->abbrev_left = budget(d, DWARF_SECTION_ABBREV);
		d->lists_left = budget(d, DWARF_SECTION_RANGES) + budget(d, DWARF_SECTION_RNGLISTS);
		rc = scan_heads(d, e);
	}
	if (rc) {
		dwarf_info_close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

void dwarf_info_close(struct dwarf_info *d)
{
	if (!d)
		return;
	for (size_t i = 0; d->tables && i < TABLES; i++)
		dwarf_abbrev_release(&d->tables[i].table);
	free(d->tables);
	free(d->units);
	dwarf_piece_free(&d->root);
	for (size_t i = 0; i < DWARF_SECTION_COUNT; i++)
		dwarf_piece_free(&d->windows[i]);
	dwarf_sections_close(d->sect);
	free(d);
}

struct dwarf_unit *dwarf_info_unit(const struct dwarf_info *d, uint64_t at)
{
	size_t lo = PARTITION_POINT(0, d->n, mid, d->units[mid].end <= at);

	return lo < d->n && d->units[lo].at <= at ? &d->units[lo] : NULL;
}

bool dwarf_info_window(
	struct dwarf_info *d, enum dwarf_section_id id, uint64_t at, size_t min, struct rd *ret)
{
	struct dwarf_piece *p = &d->windows[id];
	uint64_t size = dwarf_sections_size(d->sect, id);

	if (at >= size)
		return false;
	if (!p->len || at < p->at || at - p->at >= p->len || p->len - (at - p->at) < MIN(min, size - at))
		if (dwarf_sections_read(d->sect, id, at, MAX(min, WINDOW), p, NULL) != 0) {
			p->len = 0;
			return false;
		}
	*ret = rd_init(p->bytes + (at - p->at), p->len - (size_t)(at - p->at));
	return true;
}

/* --- abbreviation tables --- */

/* Parse the table of U, from an increasing number of bytes until it ends within them. */
static int parse_table(struct dwarf_info *d, const struct dwarf_unit *u, uint64_t code,
	struct dwarf_abbrev_table *ret, struct err *e)
{
	for (uint64_t want = code ? 512 : 16384; want <= TABLE_MAX; want *= 8) {
		struct rd r;
		size_t used;
		int rc;

		if (!dwarf_info_window(d, DWARF_SECTION_ABBREV, u->abbrev, want, &r))
			return err_set(e, -EINVAL, "an abbreviation table lies outside its section");
		rc = dwarf_abbrev_parse(r.p, rd_left(&r), &u->shape, code, ret, &used, e);
		if (used > d->abbrev_left) {
			dwarf_abbrev_release(ret);
			return err_set(e, -EINVAL, "abbreviation tables overlap without measure");
		}
		d->abbrev_left -= used;
		if (rc != -ENODATA)
			return rc;
		if (rd_left(&r) >= dwarf_sections_size(d->sect, DWARF_SECTION_ABBREV) - u->abbrev)
			break;
	}
	return err_set(e, -EINVAL, "an abbreviation table has no end");
}

static bool same_table(const struct dwarf_info_table *t, const struct dwarf_unit *u)
{
	return t->used && t->at == u->abbrev && t->shape.version == u->shape.version &&
	       t->shape.addr_size == u->shape.addr_size && t->shape.offset_size == u->shape.offset_size;
}

static void drop_table(struct dwarf_info *d, struct dwarf_info_table *t)
{
	d->tables_bytes -= dwarf_abbrev_bytes(&t->table);
	dwarf_abbrev_release(&t->table);
	t->used = false;
}

/*
 * Return a free slot. Drops the least recently used tables if no slot is free
 * or the tables together are too large.
 */
static struct dwarf_info_table *make_place(struct dwarf_info *d)
{
	for (;;) {
		struct dwarf_info_table *oldest = NULL, *empty = NULL;

		for (size_t i = 0; i < TABLES; i++) {
			struct dwarf_info_table *t = &d->tables[i];

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

static struct dwarf_info_table *pin_only(struct dwarf_info *d, struct dwarf_info_table *table)
{
	for (size_t i = 0; i < TABLES; i++)
		d->tables[i].pinned = false;
	table->pinned = true;
	return table;
}

int dwarf_info_table(struct dwarf_info *d, const struct dwarf_unit *u, bool pin,
	const struct dwarf_abbrev_table **ret, struct err *e)
{
	struct dwarf_abbrev_table parsed;
	struct dwarf_info_table *t = NULL;
	int rc;

	for (size_t i = 0; i < TABLES && !t; i++)
		if (same_table(&d->tables[i], u))
			t = &d->tables[i];
	if (!t) {
		rc = parse_table(d, u, 0, &parsed, e);
		if (rc)
			return rc;
		t = make_place(d);
		*t = (struct dwarf_info_table){
			.at = u->abbrev, .shape = u->shape, .used = true, .table = parsed
		};
		d->tables_bytes += dwarf_abbrev_bytes(&parsed);
	}
	t->last = ++d->clock;
	if (pin)
		pin_only(d, t);
	*ret = &t->table;
	return 0;
}

bool dwarf_info_has_functions(struct dwarf_info *d, const struct dwarf_unit *u)
{
	const struct dwarf_abbrev_table *t;

	return dwarf_info_table(d, u, false, &t, NULL) != 0 || t->functions;
}

/* --- the first entry --- */

static void note_attr(struct dwarf_root *root, uint16_t name, const struct dwarf_value *v)
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

static bool parse_root(const struct dwarf_abbrev_table *t, const struct dwarf_unit *u, uint64_t code,
	struct rd *r, struct dwarf_root *root)
{
	const struct dwarf_abbrev *a = dwarf_abbrev_find(t, code);

	if (!a)
		return false;
	*root = (struct dwarf_root){ .lines = DWARF_INFO_UNKNOWN,
		.id = u->id,
		.addr_base = DWARF_INFO_UNKNOWN,
		.str_base = DWARF_INFO_UNKNOWN,
		.lists_base = DWARF_INFO_UNKNOWN,
		.ranges_base = DWARF_INFO_UNKNOWN,
		.tag = a->tag,
		.children = a->children };
	for (uint32_t i = 0; i < a->n_attrs && !r->bad; i++) {
		const struct dwarf_abbrev_attr *at = &t->attrs[a->attrs + i];
		struct dwarf_value v = dwarf_form_read(r, at->form, at->implicit, &u->shape);

		note_attr(root, at->name, &v);
	}
	return !r->bad;
}

int dwarf_info_root(struct dwarf_info *d, const struct dwarf_unit *u, struct dwarf_root *ret, struct err *e)
{
	uint64_t at = u->at + u->first, len = u->end - at;

	*ret = (struct dwarf_root){ 0 };
	for (uint64_t want = 512;; want *= 16) {
		struct dwarf_abbrev_table t;
		struct rd r;
		uint64_t code;
		bool ok;
		int rc = dwarf_sections_read(d->sect, DWARF_SECTION_INFO, at, MIN(want, len), &d->root, e);

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
		dwarf_abbrev_release(&t);
		if (ok)
			return 0;
		if (want >= len || want > TABLE_MAX)
			return err_set(e, -EINVAL, "the first entry of a unit is malformed");
	}
}

/* --- what values refer to --- */

/* Read entry INDEX of the table at BASE, with entries of SIZE bytes. */
static bool indexed(struct dwarf_info *d, enum dwarf_section_id id, uint64_t base, uint64_t index,
	uint8_t size, uint64_t *ret)
{
	struct rd r;

	if (index > UINT32_MAX || base > UINT64_MAX / 2 ||
		!dwarf_info_window(d, id, base + index * size, size, &r))
		return false;
	*ret = rd_fixed(&r, size);
	return !r.bad;
}

bool dwarf_info_address(struct dwarf_info *d, uint64_t base, uint64_t index, uint8_t addr_size, uint64_t *ret)
{
	return indexed(d, DWARF_SECTION_ADDR, base, index, addr_size, ret);
}

/* If not given, it is behind the head of the section, which split DWARF before version 5 does not have. */
static uint64_t str_base(struct dwarf_info *d, struct dwarf_unit *u)
{
	struct dwarf_root root;

	if (u->str_base != DWARF_INFO_UNKNOWN)
		return u->str_base;
	u->str_base = u->shape.version < 5 ? 0 : u->shape.offset_size * UINT64_C(2);
	if (!d->dwo && dwarf_info_root(d, u, &root, NULL) == 0 && root.str_base != DWARF_INFO_UNKNOWN)
		u->str_base = root.str_base;
	return u->str_base;
}

const char *dwarf_info_text(
	struct dwarf_info *d, struct dwarf_info *alt, struct dwarf_unit *u, const struct dwarf_value *v)
{
	uint64_t at;

	switch (v->kind) {
	case DWARF_VALUE_TEXT:
		return v->text;
	case DWARF_VALUE_STRP:
		return dwarf_sections_string(d->sect, DWARF_SECTION_STR, v->u);
	case DWARF_VALUE_LINE_STRP:
		return dwarf_sections_string(d->sect, DWARF_SECTION_LINE_STR, v->u);
	case DWARF_VALUE_STRP_ALT:
		return alt ? dwarf_sections_string(alt->sect, DWARF_SECTION_STR, v->u) : NULL;
	case DWARF_VALUE_STRX:
		if (!indexed(d, DWARF_SECTION_STR_OFFSETS, str_base(d, u), v->u, u->shape.offset_size, &at))
			return NULL;
		return dwarf_sections_string(d->sect, DWARF_SECTION_STR, at);
	default:
		return NULL;
	}
}

uint64_t dwarf_info_bytes(const struct dwarf_info *d)
{
	uint64_t sum =
		dwarf_sections_bytes(d->sect) + d->tables_bytes + d->cap * sizeof(*d->units) + d->root.cap;

	for (size_t i = 0; i < DWARF_SECTION_COUNT; i++)
		sum += d->windows[i].cap;
	return sum;
}
