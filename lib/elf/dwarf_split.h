/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_split - the indexes of a .dwp: which part of each section belongs to a unit.
 *
 * DWARF 5, section 7.3.5.3, and version 2 as GNU had it before ("DebugFissionDWP"
 * of GCC's wiki), which differ in the numbers of the sections. A hash table
 * leads from the ID of a .dwo (or the signature of a type) to a row with one offset
 * and one size a section. The names of the sections in a .dwo are those that
 * dwsect has with DWO.
 *
 * Offsets have 32 bits: in a .dwp above 4 GiB they are ambiguous. A part that
 * does not lie in its section is malformed, so most of those are noticed.
 */
#ifndef STACKTOOLS_ELF_DWARF_SPLIT_H
#define STACKTOOLS_ELF_DWARF_SPLIT_H

#include "elf/dwarf_entries.h"
#include "elf/dwarf_sections.h"

struct dwsplit;

/* Offset and size of what belongs to a unit; size 0 = nothing of that section does. */
struct dwsplit_part {
	uint64_t offset, size;
};

struct dwsplit_parts {
	struct dwsplit_part of[DWSECT_COUNT];
};

/*
 * Read the index ID (DWSECT_CU_INDEX or DWSECT_TU_INDEX) of S, which must stay
 * and was opened with DWO. -ENOENT when there is none, -EINVAL when it is malformed, and what
 * dwsect_read() gives.
 */
int dwsplit_open(struct dwsect *s, enum dwsect_id id, struct dwsplit **ret, struct err *e);
void dwsplit_close(struct dwsplit *x); /* NULL is fine */

size_t dwsplit_count(const struct dwsplit *x); /* of the units */

/* Parts of the unit ID. -ENOENT when it is not in the index, -EINVAL when they lie outside their sections. */
int dwsplit_find(const struct dwsplit *x, uint64_t id, struct dwsplit_parts *ret, struct err *e);

/*
 * dwhalf - the split unit that belongs to a skeleton: in a .dwo file of its
 * own or in a .dwp.
 *
 * DWARF 5, sections 3.1.3 and 7.3.5, and GNU's extension of DWARF 4. What a .dwp
 * counts from the beginning of a unit's part of a section, a .dwo counts from the
 * section's.
 */

/* A file with split units. */
struct dwhalf {
	struct dwinfo *info; /* NULL = not open */
	struct dwsplit *index; /* of a .dwp; NULL = a .dwo */
	struct dwnames names;
};

/* Open F; with PACKED it is a .dwp. Close it in any case. */
int dwhalf_open(struct dwhalf *h, const struct elffile *f, bool packed, uint64_t max_bytes, struct err *e);
void dwhalf_close(struct dwhalf *h); /* a zeroed one is fine */

/*
 * B is that of a skeleton ROOT, whose ID says what belongs to it: it becomes
 * that of the split unit. -ENOENT when the file does not have it, -EINVAL.
 */
int dwhalf_find(struct dwhalf *h, const struct dwroot *root, struct dwbases *b, struct err *e);

#endif
