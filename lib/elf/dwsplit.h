/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwsplit - the indexes of a .dwp: which part of each section belongs to a unit.
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
#ifndef STACKTOOLS_DWSPLIT_H
#define STACKTOOLS_DWSPLIT_H

#include "elf/dwsect.h"

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

#endif
