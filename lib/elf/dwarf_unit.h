/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_unit - the units of one file's .debug_info, and what the values of their
 * entries refer to: abbreviation tables, addresses, strings.
 *
 * Format: DWARF 5, section 7.5.1 (heads), 7.26 and 7.27 (.debug_str_offsets,
 * .debug_addr); for split DWARF before version 5 the GNU extension.
 * Opening reads the heads alone; everything else comes when it is asked for, through
 * windows of some pages that are used again. Work on malformed files is
 * bounded by budgets in proportion to the sections.
 */
#ifndef STACKTOOLS_ELF_DWARF_UNIT_H
#define STACKTOOLS_ELF_DWARF_UNIT_H

#include "base/bytes.h"
#include "base/err.h"
#include "elf/dwarf_sections.h"

/*
 * dwform - the values of DWARF attributes: how wide they are, what they are.
 *
 * Forms of DWARF 2 to 5 (DWARF 5, section 7.5.6), and those of GNU for split
 * DWARF and for alternate files.
 */

/* What widths depend on: of the unit's head. */
struct dwshape {
	uint16_t version;
	uint8_t addr_size; /* 1, 2, 4 or 8 */
	uint8_t offset_size; /* 4, or 8 in the 64-bit format */
};

enum dwvalue_kind {
	DWV_NONE, /* absent, or of no use here: blocks, signatures */
	DWV_ADDR, /* an address */
	DWV_ADDRX, /* its index in .debug_addr */
	DWV_CONST, /* a number; before DWARF 4 offsets look the same */
	DWV_OFFSET, /* an offset in another section */
	DWV_LISTX, /* an index of .debug_rnglists or .debug_loclists */
	DWV_REF, /* an entry, by its offset in the unit */
	DWV_REF_INFO, /* an entry, by its offset in .debug_info */
	DWV_REF_ALT, /* an entry of the alternate file */
	DWV_TEXT, /* a string in place */
	DWV_STRP, /* offsets in .debug_str, .debug_line_str, the alternate file's .debug_str */
	DWV_LINE_STRP,
	DWV_STRP_ALT,
	DWV_STRX, /* an index of .debug_str_offsets */
};

struct dwvalue {
	enum dwvalue_kind kind;
	uint64_t u; /* DWV_TEXT: nothing */
	const char *text; /* DWV_TEXT: ends within the bytes that were read */
};

/* The value of FORM at R; IMPLICIT is that of the abbreviation. What is malformed sets r->bad. */
struct dwvalue dwform_read(struct rd *r, uint16_t form, int64_t implicit, const struct dwshape *shape);

/*
 * dwabbrev - one abbreviation table, made ready for stepping over entries.
 *
 * Format: DWARF 5, section 7.5.3. For each abbreviation it is worked out once
 * how its entries are stepped over (one addition where all forms are of fixed
 * size), and where the attributes that lead to code stand, so that most
 * entries cost a few instructions.
 */

/* What an entry means to a search for code. */
enum dwabbrev_kind {
	DWK_OTHER, /* cannot lead to code: its children need not be looked at */
	DWK_THROUGH, /* namespaces, modules: its children are looked at */
	DWK_FUNCTION,
	DWK_INLINED,
	DWK_BLOCK, /* lexical, try and catch blocks */
};

struct dwabbrev_attr {
	uint16_t name, form; /* DW_AT_*, DW_FORM_* */
	int64_t implicit;
};

/* ADD bytes, then a value to be stepped over as SKIP tells; DWSKIP_FIXED is the last. */
struct dwabbrev_step {
	uint32_t add;
	uint32_t skip;
};

/* Where the value of an attribute stands: behind STEP steps that are not fixed and ADD more bytes. */
struct dwabbrev_place {
	uint16_t attr; /* index among the abbreviation's; DWABBREV_NONE = it has no such attribute */
	uint16_t step;
	uint32_t add;
};

#define DWABBREV_NONE UINT16_MAX

struct dwabbrev {
	uint64_t code;
	uint32_t attrs, n_attrs; /* index in the table's attrs */
	uint32_t steps; /* index in the table's steps */
	uint32_t size; /* of all values, or DWABBREV_VARIES */
	uint16_t tag;
	uint8_t kind; /* enum dwabbrev_kind */
	bool children;
	bool code_range; /* has DW_AT_low_pc or DW_AT_ranges */
	struct dwabbrev_place sibling, low_pc, high_pc, ranges;
};

struct dwabbrev_table {
	struct dwabbrev *list; /* ascending by code */
	struct dwabbrev_attr *attrs;
	struct dwabbrev_step *steps;
	size_t n, n_attrs, n_steps, cap, attrs_cap, steps_cap;
	bool dense; /* list[code - 1] */
	bool functions; /* some entry may be a function with code */
};

const struct dwabbrev *dwabbrev_search(const struct dwabbrev_table *t, uint64_t code);

/* The abbreviation CODE, NULL = there is none. */
static inline const struct dwabbrev *dwabbrev_find(const struct dwabbrev_table *t, uint64_t code)
{
	if (t->dense)
		return code - 1 < t->n ? &t->list[code - 1] : NULL;
	return dwabbrev_search(t, code);
}

/*
 * Step R over the attributes of an entry of A. The bytes must have one NUL
 * behind them (struct dwpiece): strings and numbers stop there. r->bad where it ends too early.
 */
void dwabbrev_step_slow(
	const struct dwabbrev_table *t, const struct dwabbrev *a, const struct dwshape *shape, struct rd *r);

static inline void dwabbrev_step(
	const struct dwabbrev_table *t, const struct dwabbrev *a, const struct dwshape *shape, struct rd *r)
{
	if (a->size <= rd_left(r))
		r->p += a->size;
	else
		dwabbrev_step_slow(t, a, shape, r);
}

static inline bool dwabbrev_has(const struct dwabbrev_place *p)
{
	return p->attr != DWABBREV_NONE;
}

/* The value at PLACE of an entry of A whose attributes begin at R; kind DWV_NONE where there is none or it
 * ends too early. */
struct dwvalue dwabbrev_value(const struct dwabbrev_table *t, const struct dwabbrev *a,
	const struct dwabbrev_place *place, const struct dwshape *shape, const struct rd *r);

#define DWINFO_UNKNOWN UINT64_MAX

struct dwunit {
	uint64_t at, end; /* in .debug_info, with the head */
	uint64_t abbrev; /* offset of its table */
	uint64_t id; /* what joins skeletons and split units of DWARF 5; else 0 */
	uint64_t str_base; /* of its table of string offsets; DWINFO_UNKNOWN = not looked for yet */
	struct dwshape shape;
	uint8_t first; /* how far behind AT the first entry stands */
	uint8_t type; /* DW_UT_*; before DWARF 5 DW_UT_compile */
};

/* The first entry of a unit. Texts in place are valid until the next root is read. */
struct dwroot {
	struct dwvalue low, high, ranges, name, comp_dir, dwo_name;
	uint64_t lines; /* DW_AT_stmt_list, DWINFO_UNKNOWN = none */
	uint64_t id; /* DW_AT_GNU_dwo_id, or the head's */
	uint64_t addr_base, str_base, lists_base, ranges_base; /* DWINFO_UNKNOWN = not told */
	uint16_t tag;
	bool children;
};

struct dwinfo_table;

struct dwinfo {
	struct dwsect *sect;
	bool dwo;
	struct dwunit *units; /* ascending; type units are left out */
	size_t n, cap;
	struct dwinfo_table *tables;
	uint64_t clock;
	uint64_t abbrev_left, lists_left; /* bytes that may still be parsed */
	uint64_t tables_bytes;
	struct dwpiece root;
	struct dwpiece windows[DWSECT_COUNT];
};

/* -ENOENT: no debug information; -EINVAL: its heads make no sense from the first on. What comes behind a
 * broken head is left out, with the message in E and 0. */
int dwinfo_open(const struct elffile *f, bool dwo, uint64_t max_bytes, struct dwinfo **ret, struct err *e);
void dwinfo_close(struct dwinfo *d); /* NULL is fine */

/* The unit that holds offset AT of .debug_info, NULL = none. O(log n). */
struct dwunit *dwinfo_unit(const struct dwinfo *d, uint64_t at);

int dwinfo_root(struct dwinfo *d, const struct dwunit *u, struct dwroot *ret, struct err *e);

/*
 * The abbreviations of U. Some tables are kept; *RET stays until TABLES other ones were asked for, or for as
 * long as it is PINned (a table at a time: the one before is let go).
 */
int dwinfo_table(
	struct dwinfo *d, const struct dwunit *u, bool pin, const struct dwabbrev_table **ret, struct err *e);

/* Does the table of U have abbreviations of functions with code? On failure: yes. */
bool dwinfo_has_functions(struct dwinfo *d, const struct dwunit *u);

/*
 * The bytes of a section from AT on, MIN or to its end at least. Valid until
 * the next call for that section. False when it lies outside or cannot be read.
 */
bool dwinfo_window(struct dwinfo *d, enum dwsect_id id, uint64_t at, size_t min, struct rd *ret);

/* Entry INDEX of the addresses at BASE. */
bool dwinfo_address(struct dwinfo *d, uint64_t base, uint64_t index, uint8_t addr_size, uint64_t *ret);

/* The string that V of unit U is; NULL = none. ALT is the alternate file, NULL = there is none. */
const char *dwinfo_text(struct dwinfo *d, struct dwinfo *alt, struct dwunit *u, const struct dwvalue *v);

uint64_t dwinfo_bytes(const struct dwinfo *d); /* held in all */

#endif
