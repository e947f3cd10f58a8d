/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "dwabbrev.h"

#include <dwarf.h>
#include <errno.h>

#define ATTR_BYTES_MAX UINT32_MAX / 2

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

static uint8_t data_size(uint16_t form)
{
	switch (form) {
	case DW_FORM_data1:
	case DW_FORM_ref1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
		return 2;
	case DW_FORM_data4:
	case DW_FORM_ref4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
		return 8;
	default:
		return 0;
	}
}

/* The attribute AT stands OFFSET bytes behind the code. */
static void note_place(struct dwabbrev *a, const struct dwabbrev_attr *at, int32_t offset)
{
	uint8_t size = data_size(at->form);

	if (at->name == DW_AT_sibling && size && at->form >= DW_FORM_ref1) {
		a->sibling = offset;
		a->sibling_size = size;
	} else if (at->name == DW_AT_low_pc && at->form == DW_FORM_addr) {
		a->low_pc = offset;
	} else if (at->name == DW_AT_high_pc && (size || at->form == DW_FORM_addr)) {
		a->high_pc = offset;
		a->high_size = size;
	}
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
	uint64_t offset = 0, pending = 0;
	bool fixed = true;

	a->sibling = a->low_pc = a->high_pc = -1;
	a->steps = (uint32_t)t->n_steps;
	for (uint32_t i = 0; i < a->n_attrs; i++) {
		const struct dwabbrev_attr *at = &t->attrs[a->attrs + i];
		uint32_t size = 0;
		enum dwskip skip = dwform_skip_of(at->form, shape, &size);

		if (at->name == DW_AT_low_pc || at->name == DW_AT_ranges)
			a->code_range = true;
		if (fixed && offset < INT32_MAX)
			note_place(a, at, (int32_t)offset);
		if (skip == DWSKIP_UNKNOWN)
			return err_set(e, -EINVAL, "an attribute has the unknown form 0x%x", at->form);
		if (skip == DWSKIP_FIXED) {
			offset += size;
			pending += size;
			continue;
		}
		fixed = false;
		if (pending > ATTR_BYTES_MAX || add_step(t, (uint32_t)pending, skip, e) != 0)
			return err_set(e, -ENOMEM, "an abbreviation is too long");
		pending = 0;
	}
	if (pending > ATTR_BYTES_MAX)
		return err_set(e, -EINVAL, "an abbreviation is too long");
	return add_step(t, (uint32_t)pending, DWSKIP_FIXED, e);
}

/* --- parsing --- */

/* One attribute: 1, 0 at the end of the list. */
static int parse_attr(struct rd *r, struct dwabbrev_attr *at)
{
	uint64_t name = rd_uleb(r), form = rd_uleb(r);

	if (r->bad)
		return -EINVAL;
	if (!name && !form)
		return 0;
	if (name > UINT16_MAX)
		name = 0; /* nobody's that is looked for */
	at->name = (uint16_t)name;
	at->form = form > UINT16_MAX ? 0 : (uint16_t)form;
	at->implicit = form == DW_FORM_implicit_const ? rd_sleb(r) : 0;
	return r->bad ? -EINVAL : 1;
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

static int parse_one(struct rd *r, struct dwabbrev_table *t, uint64_t code, const struct dwshape *shape,
	struct err *e)
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

static int parse_all(struct rd *r, struct dwabbrev_table *t, const struct dwshape *shape, struct err *e)
{
	bool sorted = true;

	t->dense = true;
	for (;;) {
		uint64_t code = rd_uleb(r);
		int rc;

		if (r->bad)
			return err_set(e, -EINVAL, "an abbreviation table has no end");
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

int dwabbrev_parse(
	const void *p, size_t len, const struct dwshape *shape, struct dwabbrev_table *ret, struct err *e)
{
	struct rd r = rd_init(p, len);
	int rc;

	*ret = (struct dwabbrev_table){ 0 };
	rc = parse_all(&r, ret, shape, e);
	if (rc)
		dwabbrev_release(ret);
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

/* The NUL behind the bytes ends every number, so this stops at one byte behind the end at the latest. */
static void skip_leb(struct rd *r)
{
	while (*r->p & 0x80)
		r->p++;
	r->p++;
}

static void skip_string(struct rd *r)
{
	while (*r->p)
		r->p++;
	r->p++;
}

static void skip_value(struct rd *r, enum dwskip skip, const struct dwshape *shape)
{
	uint64_t form;

	switch (skip) {
	case DWSKIP_LEB:
		skip_leb(r);
		break;
	case DWSKIP_STRING:
		skip_string(r);
		break;
	case DWSKIP_BLOCK1:
		rd_bytes(r, rd_u8(r));
		break;
	case DWSKIP_BLOCK2:
		rd_bytes(r, rd_u16(r));
		break;
	case DWSKIP_BLOCK4:
		rd_bytes(r, rd_u32(r));
		break;
	case DWSKIP_BLOCK:
		rd_bytes(r, rd_uleb(r));
		break;
	case DWSKIP_INDIRECT:
		form = DW_FORM_indirect;
		dwform_read(r, (uint16_t)form, 0, shape);
		break;
	default:
		r->bad = true;
	}
	if (r->p > r->end) {
		r->p = r->end;
		r->bad = true;
	}
}

void dwabbrev_step_slow(
	const struct dwabbrev_table *t, const struct dwabbrev *a, const struct dwshape *shape, struct rd *r)
{
	for (const struct dwabbrev_step *s = &t->steps[a->steps]; !r->bad; s++) {
		rd_bytes(r, s->add);
		if (s->skip == DWSKIP_FIXED || r->bad)
			break;
		skip_value(r, s->skip, shape);
	}
}
