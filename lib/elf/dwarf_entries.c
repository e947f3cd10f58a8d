/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwarf_entries.h"

#include <dwarf.h>
#include <errno.h>

#define SPANS_MAX (4U << 20)
#define RANGE_ENTRY_MAX 32 /* larger than any entry of a list */

struct list {
	const struct dwarf_bases *b;
	uint64_t base;
	struct dwarf_span_list *spans;
	bool nomem;
};

static void add_span(struct list *l, uint64_t low, uint64_t high)
{
	/* an end that wraps is that of discarded code, counted from the highest address */
	if (low >= high || low < l->b->lowest)
		return;
	if (l->spans->n >= SPANS_MAX ||
		base_grow(&l->spans->v, &l->spans->cap, l->spans->n + 1, sizeof(*l->spans->v)) != 0) {
		l->nomem = true;
		return;
	}
	l->spans->v[l->spans->n++] = (struct dwarf_span){ low, high };
}

/* Read an address, directly or by its index. Returns false if it is not available. */
static bool dwarf_range_address(const struct dwarf_bases *b, const struct dwarf_value *v, uint64_t *ret)
{
	if (v->kind == DWARF_VALUE_ADDR) {
		*ret = v->u;
		return true;
	}
	return v->kind == DWARF_VALUE_ADDRX && b->addr != DWARF_INFO_UNKNOWN &&
	       dwarf_info_address(b->main, b->addr, v->u, b->unit->shape.addr_size, ret);
}

void dwarf_range_bases(struct dwarf_bases *b, const struct dwarf_root *root, bool split)
{
	/* without DW_AT_rnglists_base the table is behind the section's only head */
	uint64_t behind_head = b->unit->shape.offset_size == 8 ? 20 : 12;

	b->low = 0;
	b->addr = root->addr_base;
	if (b->addr == DWARF_INFO_UNKNOWN && b->unit->shape.version >= 5)
		b->addr = b->unit->shape.offset_size == 8 ? 16 : 8;
	b->lists = root->lists_base == DWARF_INFO_UNKNOWN || split ? behind_head : root->lists_base;
	/* the skeleton's own ranges are not relative to it */
	b->ranges = split ? root->ranges_base : DWARF_INFO_UNKNOWN;
	dwarf_range_address(b, &root->low, &b->low);
}

static uint64_t address_mask(uint8_t size)
{
	return size == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;
}

/* --- the lists --- */

/* Read one pair of DWARF 2 to 4. Returns false at the end of the list. */
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

/* Read an index at R and return its address. */
static uint64_t by_index(struct list *l, struct rd *r)
{
	const struct dwarf_value v = { .kind = DWARF_VALUE_ADDRX, .u = rd_uleb(r) };
	uint64_t address = 0;

	if (!dwarf_range_address(l->b, &v, &address))
		r->bad = true;
	return address;
}

/* Read one entry of DWARF 5. Returns false at the end of the list. */
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

/* Read the list at AT. Requests a new window before an entry could cross its end. */
static int read_list(
	struct list *l, struct dwarf_info *d, enum dwarf_section_id id, uint64_t at, struct err *e)
{
	bool more = true;

	while (more) {
		const uint8_t *from;
		struct rd r;

		if (!dwarf_info_window(d, id, at, RANGE_ENTRY_MAX, &r))
			return err_set(e, -EINVAL, "a list of ranges lies outside its section");
		from = r.p;
		do
			more = id == DWARF_SECTION_RANGES ? old_entry(l, &r) : new_entry(l, &r);
		while (more && rd_left(&r) >= RANGE_ENTRY_MAX);
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

/* The offset of list INDEX, from the table of offsets at the base. */
static bool list_of_index(const struct dwarf_bases *b, uint64_t index, uint64_t *ret)
{
	uint8_t size = b->unit->shape.offset_size;
	struct rd r;

	if (b->lists == DWARF_INFO_UNKNOWN || index > UINT32_MAX ||
		!dwarf_info_window(b->info, DWARF_SECTION_RNGLISTS, b->lists + index * size, size, &r))
		return false;
	*ret = b->lists + rd_fixed(&r, size);
	return !r.bad;
}

static int read_ranges(struct list *l, const struct dwarf_value *v, struct err *e)
{
	const struct dwarf_bases *b = l->b;
	uint64_t at = v->u;

	if (v->kind == DWARF_VALUE_LISTX && !list_of_index(b, v->u, &at))
		return err_set(e, -EINVAL, "a list of ranges has an index that is outside");
	if (v->kind != DWARF_VALUE_LISTX && v->kind != DWARF_VALUE_OFFSET && v->kind != DWARF_VALUE_CONST)
		return err_set(e, -EINVAL, "ranges have an odd form");
	if (b->unit->shape.version >= 5)
		return read_list(l, b->info, DWARF_SECTION_RNGLISTS, at, e);
	if (b->ranges != DWARF_INFO_UNKNOWN)
		at += b->ranges;
	return read_list(l, b->main, DWARF_SECTION_RANGES, at, e);
}

int dwarf_range_read(const struct dwarf_bases *b, const struct dwarf_value *low,
	const struct dwarf_value *high, const struct dwarf_value *ranges, struct dwarf_span_list *ret,
	struct err *e)
{
	struct list l = { .b = b, .base = b->low, .spans = ret };
	uint64_t from, to;

	ret->n = 0;
	if (ranges->kind != DWARF_VALUE_NONE)
		return read_ranges(&l, ranges, e);
	if (high->kind == DWARF_VALUE_NONE || !dwarf_range_address(b, low, &from))
		return 0;
	if (high->kind == DWARF_VALUE_CONST)
		to = from + high->u;
	else if (!dwarf_range_address(b, high, &to))
		return 0;
	add_span(&l, from, to);
	return l.nomem ? err_nomem(e, "ranges") : 0;
}

#define HOPS 16
#define CHUNK (size_t)16384
#define ENTRY_BYTES 512
#define NAME_ENTRY_MAX (UINT64_C(1) << 20)

struct dwarf_name_chunk {
	struct dwarf_name_chunk *next;
	size_t used, cap;
	char text[];
};

/* The next entry of a chain. */
struct hop {
	struct dwarf_info *d;
	uint64_t at; /* in its .debug_info */
	bool more, alt_missing;
};

static const char *keep(struct dwarf_name_table *n, const char *text)
{
	size_t len = strlen(text) + 1;
	struct dwarf_name_chunk *c = n->chunks;
	char *at;

	if (!c || c->cap - c->used < len) {
		size_t cap = MAX(CHUNK, len);

		c = malloc(sizeof(*c) + cap);
		if (!c)
			return NULL;
		*c = (struct dwarf_name_chunk){ .next = n->chunks, .cap = cap };
		n->chunks = c;
		n->bytes += sizeof(*c) + cap;
	}
	at = c->text + c->used;
	memcpy(at, text, len);
	c->used += len;
	return at;
}

static const char *text_of(
	struct dwarf_name_table *n, struct dwarf_info *d, struct dwarf_unit *u, const struct dwarf_value *v)
{
	const char *text = dwarf_info_text(d, n->alt, u, v);

	/* strings inside the entry are in a buffer that is reused */
	return text && v->kind == DWARF_VALUE_TEXT ? keep(n, text) : text;
}

static void note_link(struct dwarf_name_table *n, struct dwarf_info *d, struct dwarf_unit *u,
	const struct dwarf_value *v, struct hop *hop)
{
	*hop = (struct hop){ .d = d, .more = true };
	if (v->kind == DWARF_VALUE_REF && v->u < u->end - u->at)
		hop->at = u->at + v->u;
	else if (v->kind == DWARF_VALUE_REF_INFO)
		hop->at = v->u;
	else if (v->kind == DWARF_VALUE_REF_ALT && n->alt)
		*hop = (struct hop){ .d = n->alt, .at = v->u, .more = true };
	else
		*hop = (struct hop){ .alt_missing = v->kind == DWARF_VALUE_REF_ALT };
}

static void note_call(struct dwarf_call *call, uint16_t name, const struct dwarf_value *v)
{
	uint32_t *to = name == DW_AT_call_file     ? &call->file
		       : name == DW_AT_call_line   ? &call->line
		       : name == DW_AT_call_column ? &call->column
						   : NULL;

	if (to && v->kind == DWARF_VALUE_CONST && v->u < UINT32_MAX)
		*to = (uint32_t)v->u;
}

/* Add the attributes at R to RET and set HOP to the next entry. Returns false if the bytes end too early. */
static bool read_entry(struct dwarf_name_table *n, struct dwarf_info *d, struct dwarf_unit *u,
	const struct dwarf_abbrev_table *t, const struct dwarf_abbrev *a, struct rd *r,
	struct dwarf_name *ret, struct dwarf_call *call, struct hop *hop)
{
	struct dwarf_value name = { .kind = DWARF_VALUE_NONE }, linkage = name, link = name;

	for (uint32_t i = 0; i < a->n_attrs; i++) {
		const struct dwarf_abbrev_attr *at = &t->attrs[a->attrs + i];
		struct dwarf_value v = dwarf_form_read(r, at->form, at->implicit, &u->shape);

		if (at->name == DW_AT_name)
			name = v;
		else if (at->name == DW_AT_linkage_name || at->name == DW_AT_MIPS_linkage_name)
			linkage = v;
		else if (at->name == DW_AT_abstract_origin || at->name == DW_AT_specification)
			link = v;
		else if (call)
			note_call(call, at->name, &v);
	}
	if (r->bad)
		return false;
	if (!ret->name)
		ret->name = text_of(n, d, u, &name);
	if (!ret->linkage)
		ret->linkage = text_of(n, d, u, &linkage);
	*hop = (struct hop){ 0 };
	if (link.kind != DWARF_VALUE_NONE)
		note_link(n, d, u, &link, hop);
	return true;
}

/* Read the entry at HOP with a buffer of its own; then HOP is the next one. */
static void read_hop(struct dwarf_name_table *n, struct hop *hop, struct dwarf_name *ret)
{
	struct dwarf_info *d = hop->d;
	struct dwarf_unit *u = dwarf_info_unit(d, hop->at);
	const struct dwarf_abbrev_table *t;
	uint64_t at = hop->at, left;

	hop->more = false;
	if (!u || at < u->at + u->first || dwarf_info_table(d, u, false, &t, NULL) != 0)
		return;
	left = u->end - at;
	for (uint64_t want = ENTRY_BYTES;; want *= 16) {
		const struct dwarf_abbrev *a;
		struct rd r;

		if (dwarf_sections_read(d->sect, DWARF_SECTION_INFO, at, MIN(want, left), &n->piece, NULL) !=
			0)
			return;
		r = rd_init(n->piece.bytes, n->piece.len);
		a = dwarf_abbrev_find(t, rd_uleb(&r));
		if (!a)
			return;
		if (read_entry(n, d, u, t, a, &r, ret, NULL, hop) || want >= left || want > NAME_ENTRY_MAX)
			return;
	}
}

static struct dwarf_name *known(struct dwarf_name_table *n, const struct hop *hop, bool *added)
{
	uint32_t id = idmap_put(&n->known, (uint64_t)(uintptr_t)hop->d, hop->at, (uint32_t)n->n, added);

	if (id == UINT32_MAX || base_grow(&n->list, &n->cap, n->n + 1, sizeof(*n->list)) != 0)
		return NULL;
	if (*added)
		n->list[n->n++] = (struct dwarf_name){ 0 };
	return id < n->n ? &n->list[id] : NULL;
}

/* Follow the chain from HOP and collect the names. */
static void follow(struct dwarf_name_table *n, struct hop hop, struct dwarf_name *ret)
{
	bool added = false;
	struct dwarf_name *mine = known(n, &hop, &added);

	if (mine && !added) {
		*ret = *mine;
		return;
	}
	for (unsigned int i = 0; hop.more && i < HOPS && (!ret->name || !ret->linkage); i++)
		read_hop(n, &hop, ret);
	ret->alt_missing = hop.alt_missing && !ret->name && !ret->linkage;
	if (mine)
		*mine = *ret;
}

void dwarf_name_table_of_entry(struct dwarf_name_table *n, struct dwarf_info *d, struct dwarf_unit *u,
	const struct dwarf_abbrev_table *t, const struct dwarf_abbrev *a, struct rd r, struct dwarf_name *ret,
	struct dwarf_call *call)
{
	struct dwarf_name own = { 0 }, rest = { 0 };
	struct hop hop = { 0 };

	*ret = own;
	*call = (struct dwarf_call){ .file = DWARF_CALL_NO_FILE };
	if (!read_entry(n, d, u, t, a, &r, &own, call, &hop))
		return;
	if (hop.more && (!own.name || !own.linkage))
		follow(n, hop, &rest);
	ret->name = own.name ? own.name : rest.name;
	ret->linkage = own.linkage ? own.linkage : rest.linkage;
	ret->alt_missing = hop.alt_missing || rest.alt_missing;
}

void dwarf_name_table_free(struct dwarf_name_table *n)
{
	while (n->chunks) {
		struct dwarf_name_chunk *c = n->chunks;

		n->chunks = c->next;
		free(c);
	}
	idmap_free(&n->known);
	free(n->list);
	dwarf_piece_free(&n->piece);
	*n = (struct dwarf_name_table){ 0 };
}
