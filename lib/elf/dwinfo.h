/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwinfo - the units of one file's .debug_info, and what the values of their
 * entries refer to: abbreviation tables, addresses, strings.
 *
 * Format: DWARF 5, section 7.5.1 (heads), 7.26 and 7.27 (.debug_str_offsets,
 * .debug_addr); for split DWARF before version 5 the GNU extension.
 * Opening reads the heads alone; everything else comes when it is asked for, through
 * windows of some pages that are used again. Work on malformed files is
 * bounded by budgets in proportion to the sections.
 */
#ifndef STACKTOOLS_DWINFO_H
#define STACKTOOLS_DWINFO_H

#include "elf/dwabbrev.h"
#include "elf/dwsect.h"

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
 * broken head is left out, with the story in E and 0. */
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
