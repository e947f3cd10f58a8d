/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwhalf - the split unit that belongs to a skeleton: in a .dwo file of its
 * own or in a .dwp.
 *
 * DWARF 5, sections 3.1.3 and 7.3.5, and GNU's extension of DWARF 4. What a .dwp
 * counts from the beginning of a unit's part of a section, a .dwo counts from the
 * section's.
 */
#ifndef STACKTOOLS_DWHALF_H
#define STACKTOOLS_DWHALF_H

#include "elf/dwname.h"
#include "elf/dwrange.h"
#include "elf/dwsplit.h"

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
