/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapblock - the executable mappings of a process, as BPF sees them: read from
 * /proc, each with the file whose table it is walked by.
 *
 * A block lies in the kernel's sight (unwindspace.h), but BPF finds it only
 * when a process refers to it. Which tables its mappings have is kept in step
 * by mapblock_refresh(); the mappings themselves never change. It is shared by
 * a forked child and its parent, and holds its files (tableset_hold()).
 */
#ifndef STACKTOOLS_MAPBLOCK_H
#define STACKTOOLS_MAPBLOCK_H

#include "record/tableset.h"

struct mapblock_source; /* what a mapping is of */

struct mapblock {
	unsigned int refs;
	struct unwindspace_maps space; /* for BPF, sorted by address */
	struct mapblock_source *sources; /* of each mapping */
	struct mapblock *prev, *next;
};

struct mapblocks {
	struct tableset *tables; /* the caller's */
	struct mapblock ring; /* every block; no block itself */
};

/* TABLES has to outlive M. M must not move. It holds nothing but its blocks, which their owners drop. */
void mapblock_init(struct mapblocks *m, struct tableset *tables);

/*
 * What process TGID has mapped now; neighbours without a table are one
 * mapping. BEFORE: what the same image had, or NULL; what is there unchanged is
 * not looked at again. The block is the caller's, *CUT the mappings that it
 * lacks: those beyond UNWIND_MAPS_MAX, or for which there was no memory here.
 * NULL when the process is gone or may not be looked at (*CUT = 0), or when
 * there is no memory for any of the *CUT mappings: then some tables are given
 * up for them (see tableset_room()).
 */
struct mapblock *mapblock_read(
	struct mapblocks *m, uint32_t tgid, const struct mapblock *before, uint64_t *cut);

/* Are the mappings of A and B the same? */
bool mapblock_same(const struct mapblock *a, const struct mapblock *b);

struct mapblock *mapblock_share(struct mapblock *b); /* another reference */

/* Gives one back, when no process that BPF finds refers to it any more; NULL is fine. */
void mapblock_drop(struct mapblocks *m, struct mapblock *b);

/* Tables came or went (tableset_changed()): tell BPF so of all mappings of these files. */
void mapblock_refresh(struct mapblocks *m);

/* Has a walk missed a table of B that was dropped, see tableset_wanted()? B may be NULL. */
bool mapblock_wanted(const struct mapblocks *m, const struct mapblock *b);

#endif
