/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwarf_split.h"

#include <errno.h>

#define HEAD 16
#define COLUMNS_MAX 64 /* there are eight kinds of sections */
#define OTHER DWARF_SECTION_COUNT /* a section that is not used here */

struct dwarf_index {
	struct dwarf_sections *s;
	struct dwarf_piece bytes;
	uint32_t version, n_columns, n_units, n_slots;
	const uint8_t *hashes, *indexes, *offsets, *sizes;
	enum dwarf_section_id column[COLUMNS_MAX];
};

/* DW_SECT_*: 2, 5, 7 and 8 have other meanings since DWARF 5. */
static enum dwarf_section_id section_of(uint32_t version, uint32_t number)
{
	switch (number) {
	case 1:
		return DWARF_SECTION_INFO;
	case 2:
		return version < 5 ? DWARF_SECTION_TYPES : OTHER;
	case 3:
		return DWARF_SECTION_ABBREV;
	case 4:
		return DWARF_SECTION_LINE;
	case 6:
		return DWARF_SECTION_STR_OFFSETS;
	case 8:
		return version < 5 ? OTHER : DWARF_SECTION_RNGLISTS;
	default:
		return OTHER;
	}
}

static uint64_t number_at(const uint8_t *p, size_t size)
{
	struct rd r = rd_init(p, size);

	return rd_fixed(&r, size);
}

static uint32_t cell(const struct dwarf_index *x, const uint8_t *table, uint32_t row, uint32_t column)
{
	return (uint32_t)number_at(table + 4 * ((uint64_t)row * x->n_columns + column), 4);
}

static int malformed(struct err *e, const char *what)
{
	return err_set(e, -EINVAL, "its index of split units %s", what);
}

static int read_head(struct dwarf_index *x, struct rd *r, struct err *e)
{
	x->version = rd_u16(r);
	rd_u16(r); /* upper half of the version, or padding */
	x->n_columns = rd_u32(r);
	x->n_units = rd_u32(r);
	x->n_slots = rd_u32(r);
	if (r->bad || (x->version != 2 && x->version != 5))
		return malformed(e, "is of no known version");
	if (x->n_columns > COLUMNS_MAX)
		return malformed(e, "has too many columns");
	if (x->n_slots & (x->n_slots - 1) || x->n_units > x->n_slots)
		return malformed(e, "has a table of no sensible size");
	return 0;
}

/* The tables are consecutive: IDs, rows, kinds of the columns, offsets, sizes. */
static int find_tables(struct dwarf_index *x, struct rd *r, struct err *e)
{
	uint64_t cells = (uint64_t)x->n_units * x->n_columns;
	const uint8_t *kinds;

	x->hashes = rd_bytes(r, 8 * (uint64_t)x->n_slots);
	x->indexes = rd_bytes(r, 4 * (uint64_t)x->n_slots);
	kinds = rd_bytes(r, 4 * (uint64_t)x->n_columns);
	x->offsets = rd_bytes(r, 4 * cells);
	x->sizes = rd_bytes(r, 4 * cells);
	if (r->bad)
		return malformed(e, "is shorter than its tables");
	for (uint32_t i = 0; i < x->n_columns; i++)
		x->column[i] = section_of(x->version, cell(x, kinds, 0, i));
	return 0;
}

DEFINE_CLEANUP(struct dwarf_index *, dwarf_index_close);

int dwarf_index_open(
	struct dwarf_sections *s, enum dwarf_section_id id, struct dwarf_index **ret, struct err *e)
{
	CLEANUP(dwarf_index_close_p) struct dwarf_index *x = NULL;
	struct rd r;
	int rc;

	if (dwarf_sections_size(s, id) == 0)
		return err_set(e, -ENOENT, "has no index of split units");
	x = calloc(1, sizeof(*x));
	if (!x)
		return err_nomem(e, "an index of split units");
	x->s = s;
	rc = dwarf_sections_read(s, id, 0, UINT64_MAX, &x->bytes, e);
	if (rc)
		return rc;
	r = rd_init(x->bytes.bytes, x->bytes.len);
	rc = read_head(x, &r, e);
	rc = rc ? rc : find_tables(x, &r, e);
	if (rc)
		return rc;
	*ret = TAKE_PTR(x);
	return 0;
}

void dwarf_index_close(struct dwarf_index *x)
{
	if (!x)
		return;
	dwarf_piece_free(&x->bytes);
	free(x);
}

size_t dwarf_index_count(const struct dwarf_index *x)
{
	return x->n_units;
}

/*
 * Look up ID in the file's own hash table, probed as in the DWARF
 * specification. Returns its row, counted from 1; 0 = not found. Row 0 marks a
 * free slot.
 */
static uint32_t row_of(const struct dwarf_index *x, uint64_t id)
{
	uint32_t mask = x->n_slots - 1, slot = (uint32_t)id & mask, step = ((uint32_t)(id >> 32) & mask) | 1;

	for (uint32_t tries = 0; tries < x->n_slots; tries++, slot = (slot + step) & mask) {
		uint32_t row = (uint32_t)number_at(x->indexes + 4 * (uint64_t)slot, 4);

		if (!row)
			return 0;
		if (number_at(x->hashes + 8 * (uint64_t)slot, 8) == id)
			return row;
	}
	return 0;
}

int dwarf_index_find(const struct dwarf_index *x, uint64_t id, struct dwarf_index_parts *ret, struct err *e)
{
	uint32_t row = row_of(x, id);

	*ret = (struct dwarf_index_parts){ 0 };
	if (!row)
		return err_set(e, -ENOENT, "has no split unit 0x%016llx", (unsigned long long)id);
	if (row > x->n_units)
		return malformed(e, "points outside itself");
	for (uint32_t i = 0; i < x->n_columns; i++) {
		struct dwarf_index_part part = { cell(x, x->offsets, row - 1, i),
			cell(x, x->sizes, row - 1, i) };

		if (x->column[i] == OTHER || !part.size)
			continue;
		if (part.offset + part.size > dwarf_sections_size(x->s, x->column[i]))
			return malformed(e, "has a part outside its section");
		ret->of[x->column[i]] = part;
	}
	return 0;
}

int dwarf_split_open(
	struct dwarf_split *h, const struct elffile *f, bool packed, uint64_t max_bytes, struct err *e)
{
	int rc = dwarf_info_open(f, true, max_bytes, &h->info, e);

	return rc || !packed ? rc : dwarf_index_open(h->info->sect, DWARF_SECTION_CU_INDEX, &h->index, e);
}

void dwarf_split_close(struct dwarf_split *h)
{
	dwarf_name_table_free(&h->names);
	dwarf_index_close(h->index);
	dwarf_info_close(h->info);
	*h = (struct dwarf_split){ 0 };
}

/* Before DWARF 5 the ID is in the first entry. */
static struct dwarf_unit *unit_of_dwo(struct dwarf_split *h, uint64_t id)
{
	for (size_t i = 0; i < h->info->n; i++) {
		struct dwarf_unit *u = &h->info->units[i];
		struct dwarf_root root;

		if (u->shape.version >= 5 && u->id != id)
			continue;
		if (u->shape.version >= 5 || (dwarf_info_root(h->info, u, &root, NULL) == 0 && root.id == id))
			return u;
	}
	return NULL;
}

static struct dwarf_unit *unit_of_dwp(struct dwarf_split *h, uint64_t id, uint64_t *lists, struct err *e)
{
	struct dwarf_index_parts p;
	struct dwarf_unit *u;

	if (dwarf_index_find(h->index, id, &p, e) != 0)
		return NULL;
	u = dwarf_info_unit(h->info, p.of[DWARF_SECTION_INFO].offset);
	if (!u || u->at != p.of[DWARF_SECTION_INFO].offset)
		return NULL;
	*lists = p.of[DWARF_SECTION_RNGLISTS].offset;
	if (u->str_base != DWARF_INFO_UNKNOWN)
		return u;
	/* on first use: make the offsets relative to the beginning of the sections */
	u->abbrev += p.of[DWARF_SECTION_ABBREV].offset;
	u->str_base = p.of[DWARF_SECTION_STR_OFFSETS].offset +
		      (u->shape.version < 5 ? 0 : u->shape.offset_size * UINT64_C(2));
	return u;
}

int dwarf_split_find(
	struct dwarf_split *h, const struct dwarf_root *root, struct dwarf_bases *b, struct err *e)
{
	uint64_t lists = 0, low = b->low;
	struct dwarf_unit *u = h->index ? unit_of_dwp(h, root->id, &lists, e) : unit_of_dwo(h, root->id);

	if (!u)
		return err_set(e, -ENOENT, "split debug information does not have the unit %016llx",
			(unsigned long long)root->id);
	b->info = h->info;
	b->unit = u;
	dwarf_range_bases(b, root, true);
	b->lists += lists;
	b->low = low;
	return 0;
}
