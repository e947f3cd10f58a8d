/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwrange.h"

#include <dwarf.h>
#include <errno.h>

#define SPANS_MAX (4U << 20)
#define ENTRY_MAX 32 /* more than any entry of a list takes */

struct list {
	const struct dwbases *b;
	uint64_t base;
	struct dwspans *spans;
	bool nomem;
};

static void add_span(struct list *l, uint64_t low, uint64_t high)
{
	/* an end that wraps is that of a discarded one: it counts from the highest address */
	if (low >= high || low < l->b->lowest)
		return;
	if (l->spans->n >= SPANS_MAX ||
		base_grow(&l->spans->v, &l->spans->cap, l->spans->n + 1, sizeof(*l->spans->v)) != 0) {
		l->nomem = true;
		return;
	}
	l->spans->v[l->spans->n++] = (struct dwspan){ low, high };
}

bool dwrange_address(const struct dwbases *b, const struct dwvalue *v, uint64_t *ret)
{
	if (v->kind == DWV_ADDR) {
		*ret = v->u;
		return true;
	}
	return v->kind == DWV_ADDRX && b->addr != DWINFO_UNKNOWN &&
	       dwinfo_address(b->main, b->addr, v->u, b->unit->shape.addr_size, ret);
}

void dwrange_bases(struct dwbases *b, const struct dwroot *root, bool split)
{
	/* without DW_AT_rnglists_base the table stands behind the section's only head */
	uint64_t behind_head = b->unit->shape.offset_size == 8 ? 20 : 12;

	b->low = 0;
	b->addr = root->addr_base;
	if (b->addr == DWINFO_UNKNOWN && b->unit->shape.version >= 5)
		b->addr = b->unit->shape.offset_size == 8 ? 16 : 8;
	b->lists = root->lists_base == DWINFO_UNKNOWN || split ? behind_head : root->lists_base;
	/* the skeleton's own ranges do not count from it */
	b->ranges = split ? root->ranges_base : DWINFO_UNKNOWN;
	dwrange_address(b, &root->low, &b->low);
}

static uint64_t address_mask(uint8_t size)
{
	return size == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;
}

/* --- the lists --- */

/* One pair of DWARF 2 to 4; false at the end of the list. */
static bool old_entry(struct list *l, struct rd *r)
{
	uint8_t size = l->b->unit->shape.addr_size;
	uint64_t low = rd_fixed(r, size), high = rd_fixed(r, size);

	if (r->bad || (!low && !high))
		return false;
	if (low == address_mask(size))
		l->base = high;
	else
		add_span(l, l->base + low, l->base + high);
	return true;
}

/* The address that the next number of R is the index of. */
static uint64_t by_index(struct list *l, struct rd *r)
{
	const struct dwvalue v = { .kind = DWV_ADDRX, .u = rd_uleb(r) };
	uint64_t address = 0;

	if (!dwrange_address(l->b, &v, &address))
		r->bad = true;
	return address;
}

/* One entry of DWARF 5; false at the end of the list. */
static bool new_entry(struct list *l, struct rd *r)
{
	uint8_t size = l->b->unit->shape.addr_size;
	uint64_t low = 0, high = 0;

	switch (rd_u8(r)) {
	case DW_RLE_base_addressx:
		l->base = by_index(l, r);
		break;
	case DW_RLE_startx_endx:
		low = by_index(l, r);
		high = by_index(l, r);
		break;
	case DW_RLE_startx_length:
		low = by_index(l, r);
		high = low + rd_uleb(r);
		break;
	case DW_RLE_offset_pair:
		low = l->base + rd_uleb(r);
		high = l->base + rd_uleb(r);
		break;
	case DW_RLE_base_address:
		l->base = rd_fixed(r, size);
		break;
	case DW_RLE_start_end:
		low = rd_fixed(r, size);
		high = rd_fixed(r, size);
		break;
	case DW_RLE_start_length:
		low = rd_fixed(r, size);
		high = low + rd_uleb(r);
		break;
	case DW_RLE_end_of_list:
		return false;
	default:
		r->bad = true;
	}
	if (!r->bad)
		add_span(l, low, high);
	return !r->bad;
}

/* The list at AT. A window is asked for anew before it ends within an entry. */
static int read_list(struct list *l, struct dwinfo *d, enum dwsect_id id, uint64_t at, struct err *e)
{
	bool more = true;

	while (more) {
		const uint8_t *from;
		struct rd r;

		if (!dwinfo_window(d, id, at, ENTRY_MAX, &r))
			return err_set(e, -EINVAL, "a list of ranges lies outside its section");
		from = r.p;
		do
			more = id == DWSECT_RANGES ? old_entry(l, &r) : new_entry(l, &r);
		while (more && rd_left(&r) >= ENTRY_MAX);
		if (r.bad || r.p == from)
			return err_set(e, -EINVAL, "a list of ranges is malformed");
		if (l->nomem)
			return err_nomem(e, "a list of ranges");
		if ((uint64_t)(r.p - from) > d->lists_left)
			return err_set(e, -EINVAL, "lists of ranges overlap without measure");
		d->lists_left -= (uint64_t)(r.p - from);
		at += (uint64_t)(r.p - from);
	}
	return 0;
}

/* The offset of list INDEX: a table of offsets stands at the base. */
static bool list_of_index(const struct dwbases *b, uint64_t index, uint64_t *ret)
{
	uint8_t size = b->unit->shape.offset_size;
	struct rd r;

	if (b->lists == DWINFO_UNKNOWN || index > UINT32_MAX ||
		!dwinfo_window(b->info, DWSECT_RNGLISTS, b->lists + index * size, size, &r))
		return false;
	*ret = b->lists + rd_fixed(&r, size);
	return !r.bad;
}

static int read_ranges(struct list *l, const struct dwvalue *v, struct err *e)
{
	const struct dwbases *b = l->b;
	uint64_t at = v->u;

	if (v->kind == DWV_LISTX && !list_of_index(b, v->u, &at))
		return err_set(e, -EINVAL, "a list of ranges has an index that is outside");
	if (v->kind != DWV_LISTX && v->kind != DWV_OFFSET && v->kind != DWV_CONST)
		return err_set(e, -EINVAL, "ranges have an odd form");
	if (b->unit->shape.version >= 5)
		return read_list(l, b->info, DWSECT_RNGLISTS, at, e);
	if (b->ranges != DWINFO_UNKNOWN)
		at += b->ranges;
	return read_list(l, b->main, DWSECT_RANGES, at, e);
}

int dwrange_read(const struct dwbases *b, const struct dwvalue *low, const struct dwvalue *high,
	const struct dwvalue *ranges, struct dwspans *ret, struct err *e)
{
	struct list l = { .b = b, .base = b->low, .spans = ret };
	uint64_t from, to;

	ret->n = 0;
	if (ranges->kind != DWV_NONE)
		return read_ranges(&l, ranges, e);
	if (high->kind == DWV_NONE || !dwrange_address(b, low, &from))
		return 0;
	if (high->kind == DWV_CONST)
		to = from + high->u;
	else if (!dwrange_address(b, high, &to))
		return 0;
	add_span(&l, from, to);
	return l.nomem ? err_nomem(e, "ranges") : 0;
}
