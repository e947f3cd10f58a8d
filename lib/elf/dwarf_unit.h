/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_unit - the units of one file's .debug_info, and what the values of
 * their entries refer to: abbreviation tables, addresses, strings.
 *
 * Format: DWARF 5, section 7.5.1 (heads), 7.26 and 7.27 (.debug_str_offsets,
 * .debug_addr); for split DWARF before version 5 the GNU extension. Opening
 * reads only the heads; everything else is read on demand through windows of
 * some pages that are reused. Budgets in proportion to the sections bound the
 * work on malformed files.
 */
#ifndef STACKTOOLS_ELF_DWARF_UNIT_H
#define STACKTOOLS_ELF_DWARF_UNIT_H

#include "base/bytes.h"
#include "base/err.h"
#include "elf/dwarf_sections.h"

/*
 * dwarf_form - the values of DWARF attributes: their widths and kinds.
 *
 * Forms of DWARF 2 to 5 (DWARF 5, section 7.5.6), and those of GNU for split
 * DWARF and alternate files.
 */

/* What widths depend on; from the unit's head. */
struct dwarf_shape {
	uint16_t version;
	uint8_t addr_size; /* 1, 2, 4 or 8 */
	uint8_t offset_size; /* 4, or 8 in the 64-bit format */
};

enum dwarf_value_kind {
	DWARF_VALUE_NONE, /* absent, or not used here: blocks, signatures */
	DWARF_VALUE_ADDR, /* an address */
	DWARF_VALUE_ADDRX, /* index in .debug_addr */
	DWARF_VALUE_CONST, /* a number; before DWARF 4 offsets have the same forms */
	DWARF_VALUE_OFFSET, /* offset in another section */
	DWARF_VALUE_LISTX, /* index in .debug_rnglists or .debug_loclists */
	DWARF_VALUE_REF, /* an entry, by its offset in the unit */
	DWARF_VALUE_REF_INFO, /* an entry, by its offset in .debug_info */
	DWARF_VALUE_REF_ALT, /* an entry of the alternate file */
	DWARF_VALUE_TEXT, /* a string inside the entry */
	DWARF_VALUE_STRP, /* offsets in .debug_str, .debug_line_str, the alternate file's .debug_str */
	DWARF_VALUE_LINE_STRP,
	DWARF_VALUE_STRP_ALT,
	DWARF_VALUE_STRX, /* index in .debug_str_offsets */
};

struct dwarf_value {
	enum dwarf_value_kind kind;
	uint64_t u; /* unused for DWARF_VALUE_TEXT */
	const char *text; /* DWARF_VALUE_TEXT: ends within the bytes that were read */
};

/* Read the value of FORM at R. IMPLICIT is the value in the abbreviation. Malformed input sets r->bad. */
struct dwarf_value dwarf_form_read(
	struct rd *r, uint16_t form, int64_t implicit, const struct dwarf_shape *shape);

/*
 * dwarf_abbrev - one abbreviation table, prepared for skipping entries.
 *
 * Format: DWARF 5, section 7.5.3. For each abbreviation it is computed once how
 * to skip its entries (one addition if all forms have a fixed size) and where
 * the attributes that lead to code are, so that most entries cost a few
 * instructions.
 */

/* What an entry means to a search for code. */
enum dwarf_abbrev_kind {
	DWK_OTHER, /* cannot lead to code: its children are not visited */
	DWK_THROUGH, /* namespaces, modules: its children are visited */
	DWK_FUNCTION,
	DWK_INLINED,
	DWK_BLOCK, /* lexical, try and catch blocks */
};

struct dwarf_abbrev_attr {
	uint16_t name, form; /* DW_AT_*, DW_FORM_* */
	int64_t implicit;
};

/* Skip ADD bytes, then a value of kind SKIP (enum dwarf_skip); DWARF_SKIP_FIXED is the last step. */
struct dwarf_abbrev_step {
	uint32_t add;
	uint32_t skip;
};

/* Where the value of an attribute is: behind STEP values of variable size and ADD more bytes. */
struct dwarf_abbrev_place {
	uint16_t attr; /* index among the attributes; DWARF_ABBREV_NONE = the entry has none */
	uint16_t step;
	uint32_t add;
};

#define DWARF_ABBREV_NONE UINT16_MAX

struct dwarf_abbrev {
	uint64_t code;
	uint32_t attrs, n_attrs; /* index in the table's attrs */
	uint32_t steps; /* index in the table's steps */
	uint32_t size; /* of all values, or DWARF_ABBREV_VARIES */
	uint16_t tag;
	uint8_t kind; /* enum dwarf_abbrev_kind */
	bool children;
	bool code_range; /* has DW_AT_low_pc or DW_AT_ranges */
	struct dwarf_abbrev_place sibling, low_pc, high_pc, ranges;
};

struct dwarf_abbrev_table {
	struct dwarf_abbrev *list; /* ascending by code */
	struct dwarf_abbrev_attr *attrs;
	struct dwarf_abbrev_step *steps;
	size_t n, n_attrs, n_steps, cap, attrs_cap, steps_cap;
	bool dense; /* list[code - 1] */
	bool functions; /* some entry may be a function with code */
};

const struct dwarf_abbrev *dwarf_abbrev_search(const struct dwarf_abbrev_table *t, uint64_t code);

/* The abbreviation CODE, NULL = there is none. */
static inline const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_abbrev_table *t, uint64_t code)
{
	if (t->dense)
		return code - 1 < t->n ? &t->list[code - 1] : NULL;
	return dwarf_abbrev_search(t, code);
}

/*
 * Move R over the attributes of an entry of A. One NUL must follow the bytes
 * (struct dwarf_piece): strings and numbers stop there. Sets r->bad if the
 * bytes end too early.
 */
void dwarf_abbrev_step_slow(const struct dwarf_abbrev_table *t, const struct dwarf_abbrev *a,
	const struct dwarf_shape *shape, struct rd *r);

static inline void dwarf_abbrev_step(const struct dwarf_abbrev_table *t, const struct dwarf_abbrev *a,
	const struct dwarf_shape *shape, struct rd *r)
{
	if (a->size <= rd_left(r))
		r->p += a->size;
	else
		dwarf_abbrev_step_slow(t, a, shape, r);
}

static inline bool dwarf_abbrev_has(const struct dwarf_abbrev_place *p)
{
	return p->attr != DWARF_ABBREV_NONE;
}

/*
 * The value at PLACE of an entry of A whose attributes begin at R. Its kind is
 * DWARF_VALUE_NONE if there is none or it ends too early.
 */
struct dwarf_value dwarf_abbrev_value(const struct dwarf_abbrev_table *t, const struct dwarf_abbrev *a,
	const struct dwarf_abbrev_place *place, const struct dwarf_shape *shape, const struct rd *r);

#define DWARF_INFO_UNKNOWN UINT64_MAX

struct dwarf_unit {
	uint64_t at, end; /* in .debug_info, including the head */
	uint64_t abbrev; /* offset of its table */
	uint64_t id; /* joins skeletons and split units of DWARF 5; else 0 */
	uint64_t str_base; /* of its table of string offsets; DWARF_INFO_UNKNOWN = not determined yet */
	struct dwarf_shape shape;
	uint8_t first; /* offset of the first entry from AT */
	uint8_t type; /* DW_UT_*; before DWARF 5 DW_UT_compile */
};

/* The first entry of a unit. Strings inside it are valid until the next root is read. */
struct dwarf_root {
	struct dwarf_value low, high, ranges, name, comp_dir, dwo_name;
	uint64_t lines; /* DW_AT_stmt_list, DWARF_INFO_UNKNOWN = none */
	uint64_t id; /* DW_AT_GNU_dwo_id, or the head's */
	uint64_t addr_base, str_base, lists_base, ranges_base; /* DWARF_INFO_UNKNOWN = not given */
	uint16_t tag;
	bool children;
};

struct dwarf_info_table;

struct dwarf_info {
	struct dwarf_sections *sect;
	bool dwo;
	struct dwarf_unit *units; /* ascending; without type units */
	size_t n, cap;
	struct dwarf_info_table *tables;
	uint64_t clock;
	uint64_t abbrev_left, lists_left; /* bytes that may still be parsed */
	uint64_t tables_bytes;
	struct dwarf_piece root;
	struct dwarf_piece windows[DWARF_SECTION_COUNT];
};

/*
 * -ENOENT: no debug information. If a head is not valid, it and all behind it
 * are dropped: 0 with the message in E, or -EINVAL if there is no unit before
 * it.
 */
int dwarf_info_open(
	const struct elffile *f, bool dwo, uint64_t max_bytes, struct dwarf_info **ret, struct err *e);
void dwarf_info_close(struct dwarf_info *d); /* NULL is fine */

/* The unit that holds offset AT of .debug_info, NULL = none. O(log n). */
struct dwarf_unit *dwarf_info_unit(const struct dwarf_info *d, uint64_t at);

int dwarf_info_root(struct dwarf_info *d, const struct dwarf_unit *u, struct dwarf_root *ret, struct err *e);

/*
 * The abbreviations of U. Some tables are cached. With PIN, *RET is valid until
 * the next call with PIN; otherwise a call for another table may free it.
 */
int dwarf_info_table(struct dwarf_info *d, const struct dwarf_unit *u, bool pin,
	const struct dwarf_abbrev_table **ret, struct err *e);

/* Does the table of U have abbreviations of functions with code? Returns true on failure. */
bool dwarf_info_has_functions(struct dwarf_info *d, const struct dwarf_unit *u);

/*
 * The bytes of a section from AT on: at least MIN, or up to its end. Valid
 * until the next call for that section. False if AT lies outside or the section
 * cannot be read.
 */
bool dwarf_info_window(
	struct dwarf_info *d, enum dwarf_section_id id, uint64_t at, size_t min, struct rd *ret);

/* Entry INDEX of the addresses at BASE. */
bool dwarf_info_address(
	struct dwarf_info *d, uint64_t base, uint64_t index, uint8_t addr_size, uint64_t *ret);

/* The string that V of unit U refers to; NULL = none. ALT is the alternate file; NULL = there is none. */
const char *dwarf_info_text(
	struct dwarf_info *d, struct dwarf_info *alt, struct dwarf_unit *u, const struct dwarf_value *v);

uint64_t dwarf_info_bytes(const struct dwarf_info *d); /* memory used */

#endif
