/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_split - the indexes of a .dwp: which part of each section belongs to a
 * unit.
 *
 * DWARF 5, section 7.3.5.3, and version 2 as GNU had it before
 * ("DebugFissionDWP" of GCC's wiki); they differ in the numbers of the
 * sections. A hash table maps the ID of a .dwo (or the signature of a type) to
 * a row with one offset and one size for each section. Sections are opened by
 * dwarf_sections_open() with DWO.
 *
 * Offsets have 32 bits and are ambiguous in a .dwp above 4 GiB. A part outside
 * its section is treated as malformed, which detects most of these.
 */
#ifndef STACKTOOLS_ELF_DWARF_SPLIT_H
#define STACKTOOLS_ELF_DWARF_SPLIT_H

#include "elf/dwarf_entries.h"
#include "elf/dwarf_sections.h"

struct dwarf_index;

/* Offset and size of a unit's part of a section; size 0 = none. */
struct dwarf_index_part {
	uint64_t offset, size;
};

struct dwarf_index_parts {
	struct dwarf_index_part of[DWARF_SECTION_COUNT];
};

/*
 * Read the index ID (DWARF_SECTION_CU_INDEX or DWARF_SECTION_TU_INDEX) of S,
 * which must be opened with DWO and outlive *RET. -ENOENT if there is none,
 * -EINVAL if it is malformed, and the errors of dwarf_sections_read().
 */
int dwarf_index_open(
	struct dwarf_sections *s, enum dwarf_section_id id, struct dwarf_index **ret, struct err *e);
void dwarf_index_close(struct dwarf_index *x); /* NULL is fine */

size_t dwarf_index_count(const struct dwarf_index *x); /* number of units */

/* The parts of the unit ID. -ENOENT if it is not in the index, -EINVAL if they lie outside their sections. */
int dwarf_index_find(const struct dwarf_index *x, uint64_t id, struct dwarf_index_parts *ret, struct err *e);

/*
 * dwarf_split - the split unit that belongs to a skeleton: in a .dwo file of
 * its own or in a .dwp.
 *
 * DWARF 5, sections 3.1.3 and 7.3.5, and GNU's extension of DWARF 4. In a .dwp,
 * offsets count from the beginning of the unit's part of a section; in a .dwo,
 * from the beginning of the section.
 */

/* A file with split units. */
struct dwarf_split {
	struct dwarf_info *info; /* NULL = not open */
	struct dwarf_index *index; /* of a .dwp; NULL = it is a .dwo */
	struct dwarf_name_table names;
};

/* Open F; PACKED: it is a .dwp. Call dwarf_split_close() even on failure. */
int dwarf_split_open(
	struct dwarf_split *h, const struct elffile *f, bool packed, uint64_t max_bytes, struct err *e);
void dwarf_split_close(struct dwarf_split *h); /* a zeroed one is fine */

/*
 * Change B from the skeleton ROOT to the split unit with ROOT's ID. -ENOENT if
 * the file does not have it, -EINVAL.
 */
int dwarf_split_find(
	struct dwarf_split *h, const struct dwarf_root *root, struct dwarf_bases *b, struct err *e);

#endif
