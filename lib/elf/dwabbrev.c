/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwabbrev.h"

#include <dwarf.h>
#include <errno.h>

#define VALUES_MAX (UINT32_MAX / 2) /* of one entry */

static enum dwabbrev_kind kind_of(uint64_t tag)
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

/* --- where values stand --- */

static void note_place(struct dwabbrev *a, uint16_t name, uint32_t attr, uint32_t step, uint32_t add)
{
	struct dwabbrev_place *p = name == DW_AT_sibling   ? &a->sibling
				   : name == DW_AT_low_pc  ? &a->low_pc
				   : name == DW_AT_high_pc ? &a->high_pc
				   : name == DW_AT_ranges  ? &a->ranges
							   : NULL;

	if (p && attr < DWABBREV_NONE && step < UINT16_MAX)
		*p = (struct dwabbrev_place){ .attr = (uint16_t)attr, .step = (uint16_t)step, .add = add };
}

static int add_step(struct dwabbrev_table *t, uint32_t add, enum dwskip skip, struct err *e)
{
	if (base_grow(&t->steps, &t->steps_cap, t->n_steps + 1, sizeof(*t->steps)) != 0)
		return err_nomem(e, "an abbreviation table");
	t->steps[t->n_steps++] = (struct dwabbrev_step){ .add = add, .skip = skip };
	return 0;
}

/* Steps and places of the last abbreviation. */
static int compile(struct dwabbrev_table *t, struct dwabbrev *a, const struct dwshape *shape, struct err *e)
{
	uint32_t pending = 0, step = 0;
	int rc;

	a->sibling.attr = a->low_pc.attr = a->high_pc.attr = a->ranges.attr = DWABBREV_NONE;
	a->steps = (uint32_t)t->n_steps;
	for (uint32_t i = 0; i < a->n_attrs; i++) {
		const struct dwabbrev_attr *at = &t->attrs[a->attrs + i];
		uint32_t size = 0;
		enum dwskip skip = dwform_skip_of(at->form, shape, &size);

		if (skip == DWSKIP_UNKNOWN)
			return err_set(e, -EINVAL, "an attribute has the unknown form 0x%x", at->form);
		note_place(a, at->name, i, step, pending);
		pending += size;
		if (pending > VALUES_MAX)
			return err_set(e, -EINVAL, "an abbreviation is too long");
		if (skip == DWSKIP_FIXED)
			continue;
		rc = add_step(t, pending, skip, e);
		if (rc)
			return rc;
		pending = 0;
		step++;
	}
	a->size = step ? DWABBREV_VARIES : pending;
	a->code_range = dwabbrev_has(&a->low_pc) || dwabbrev_has(&a->ranges);
	return add_step(t, pending, DWSKIP_FIXED, e);
}

/* --- parsing --- */

/* One attribute: 1, 0 at the end of the list. */
static int parse_attr(struct rd *r, struct dwabbrev_attr *at)
{
	uint64_t name = rd_uleb(r), form = rd_uleb(r);

	if (r->bad)
		return -ENODATA;
	if (!name && !form)
		return 0;
	if (name > UINT16_MAX)
		name = 0; /* nobody's that is looked for */
	at->name = (uint16_t)name;
	at->form = form > UINT16_MAX ? 0 : (uint16_t)form;
	at->implicit = form == DW_FORM_implicit_const ? rd_sleb(r) : 0;
	return r->bad ? -ENODATA : 1;
}

static int parse_attrs(struct rd *r, struct dwabbrev_table *t, struct dwabbrev *a, struct err *e)
{
	struct dwabbrev_attr at;
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

static int parse_one(
	struct rd *r, struct dwabbrev_table *t, uint64_t code, const struct dwshape *shape, struct err *e)
{
	uint64_t tag = rd_uleb(r);
	struct dwabbrev a = { .code = code, .kind = (uint8_t)kind_of(tag) };
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
	const struct dwabbrev *x = a, *y = b;

	return CMP(x->code, y->code);
}

static int parse_all(
	struct rd *r, struct dwabbrev_table *t, const struct dwshape *shape, uint64_t until, struct err *e)
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

int dwabbrev_parse(const void *p, size_t len, const struct dwshape *shape, uint64_t code,
	struct dwabbrev_table *ret, size_t *used, struct err *e)
{
	struct rd r = rd_init(p, len);
	int rc;

	*ret = (struct dwabbrev_table){ 0 };
	rc = parse_all(&r, ret, shape, code, e);
	if (rc)
		dwabbrev_release(ret);
	if (used)
		*used = len - rd_left(&r);
	return rc;
}

void dwabbrev_release(struct dwabbrev_table *t)
{
	free(t->list);
	free(t->attrs);
	free(t->steps);
	*t = (struct dwabbrev_table){ 0 };
}

size_t dwabbrev_bytes(const struct dwabbrev_table *t)
{
	return t->cap * sizeof(*t->list) + t->attrs_cap * sizeof(*t->attrs) +
	       t->steps_cap * sizeof(*t->steps);
}

const struct dwabbrev *dwabbrev_search(const struct dwabbrev_table *t, uint64_t code)
{
	const struct dwabbrev key = { .code = code };

	return t->n ? bsearch(&key, t->list, t->n, sizeof(*t->list), by_code) : NULL;
}

/* --- stepping --- */

/* The length of a block; its width is told by SKIP. */
static uint64_t block_len(struct rd *r, uint32_t skip)
{
	switch (skip) {
	case DWSKIP_BLOCK1:
		return rd_u8(r);
	case DWSKIP_BLOCK2:
		return rd_u16(r);
	case DWSKIP_BLOCK4:
		return rd_u32(r);
	default:
		return rd_uleb(r);
	}
}

/* The NUL behind the bytes ends numbers and strings, so this stops one byte behind the end at the latest. */
static const uint8_t *skip_value(
	const uint8_t *p, const uint8_t *end, uint32_t skip, const struct dwshape *shape)
{
	struct rd r = { .p = p, .end = end };

	switch (skip) {
	case DWSKIP_LEB:
		while (*p & 0x80)
			p++;
		return p + 1;
	case DWSKIP_STRING:
		return p + strlen((const char *)p) + 1;
	case DWSKIP_INDIRECT:
		dwform_read(&r, DW_FORM_indirect, 0, shape);
		break;
	default:
		rd_bytes(&r, block_len(&r, skip));
	}
	return r.bad ? end + 1 : r.p;
}

/* Over LIMIT steps and what stands before the next one. */
static void step(const struct dwabbrev_step *s, uint32_t limit, const struct dwshape *shape, struct rd *r)
{
	const uint8_t *p = r->p, *end = r->end;

	for (;; s++, limit--) {
		if (s->add > (size_t)(end - p))
			break;
		if (s->skip == DWSKIP_FIXED || !limit) {
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

void dwabbrev_step_slow(
	const struct dwabbrev_table *t, const struct dwabbrev *a, const struct dwshape *shape, struct rd *r)
{
	step(&t->steps[a->steps], UINT32_MAX, shape, r);
}

struct dwvalue dwabbrev_value(const struct dwabbrev_table *t, const struct dwabbrev *a,
	const struct dwabbrev_place *place, const struct dwshape *shape, const struct rd *r)
{
	struct dwvalue v = { .kind = DWV_NONE };
	struct rd at = *r;

	if (!dwabbrev_has(place))
		return v;
	if (place->step)
		step(&t->steps[a->steps], place->step, shape, &at);
	rd_bytes(&at, place->add);
	if (!at.bad) {
		const struct dwabbrev_attr *attr = &t->attrs[a->attrs + place->attr];

		v = dwform_read(&at, attr->form, attr->implicit, shape);
	}
	if (at.bad)
		v.kind = DWV_NONE;
	return v;
}
