/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwtop - what a unit's first entry says, made ready: its texts, what its
 * entries count from, its lines.
 */
#ifndef STACKTOOLS_DWTOP_H
#define STACKTOOLS_DWTOP_H

#include "elf/dwline.h"
#include "elf/dwrange.h"

struct dwtop {
	struct dwroot root;
	struct dwbases bases;
	char *comp_dir, *name, *dwo_name; /* NULL = not told */
};

/* Of unit U of D; ALT is the alternate file or NULL. *T is zeroed or of another unit. */
int dwtop_read(struct dwtop *t, struct dwinfo *d, struct dwinfo *alt, struct dwunit *u, uint64_t lowest,
	struct err *e);
void dwtop_free(struct dwtop *t); /* a zeroed one is fine */

/* Is its contents in another file? */
bool dwtop_is_skeleton(const struct dwtop *t);

/* Where that file was when it was made, in fresh memory; NULL = not known. */
char *dwtop_dwo_path(const struct dwtop *t);

/* Its line table: 0 and *RET, NULL = it has none; else as dwline_open(). */
int dwtop_lines(const struct dwtop *t, struct dwline **ret, struct err *e);

#endif
