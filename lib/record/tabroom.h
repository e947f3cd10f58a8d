/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tabroom - unwind tables in the memory that BPF sees: where each one lies,
 * and which go when memory is short.
 *
 * A table for which there is no room waits (TABFILE_WAITING) while those that
 * were used least, as many as make its room, are given up; their memory is free
 * after two quiet periods. One that was used within five seconds stays, so that
 * no two take turns. Where that makes no room the new table is refused
 * (TABFILE_DROPPED): it is asked for again when a walk has missed it, each time
 * later. An eighth of the memory is left to mappings, which push tables out
 * beyond it.
 */
#ifndef STACKTOOLS_TABROOM_H
#define STACKTOOLS_TABROOM_H

#include "record/tabfiles.h"
#include "record/unwindspace.h"

struct tabroom {
	struct unwindspace *space; /* the caller's, as FILES */
	struct tabfiles *files;
	uint64_t table_bytes; /* used by tables and mappings, beyond which no table is added */
	uint64_t maps_asked, maps_given; /* for tabroom_maps(): not free yet */
	unsigned int maps_quiets; /* since that began */
	uint64_t dropped; /* tables given up, or refused */
};

/* SPACE and FILES have to outlive R; BYTES: of the chunks that SPACE uses at most. It holds nothing. */
void tabroom_init(struct tabroom *r, struct unwindspace *space, struct tabfiles *files, uint64_t bytes);

/*
 * Put table TAB, of at least one segment, into the kernel's sight: F is READY
 * then, or WAITING with a copy of its own, or DROPPED.
 */
void tabroom_put(struct tabroom *r, struct tabfile *f, const struct unwindtab *tab);

/* Nothing could be made of F for now: it is DROPPED, and counted. */
void tabroom_refuse(struct tabroom *r, struct tabfile *f);

/* The table of F was given up, or refused, and may be there again. */
bool tabroom_may_ask(const struct tabfile *f);

/* That, and a walk has missed it lately. */
bool tabroom_wanted(const struct tabroom *r, const struct tabfile *f);

/* What a mapping of F (NULL = of no file) at START with file offset OFFSET is to BPF: bias and word of RET.
 */
void tabroom_map(const struct tabroom *r, const struct tabfile *f, uint64_t start, uint64_t offset,
	struct unwind_map *ret);

/* Mappings of LEN bytes found no room: give up tables. False when none can be given up now. */
bool tabroom_maps(struct tabroom *r, size_t len);

/* An RCU grace period has passed: then, of every file, what the next two say. */
void tabroom_quiet(struct tabroom *r);

/* Another one of F, for which tabroom_quiet() was called: true when its table (`bytes`) is to be put again.
 */
bool tabroom_waited(struct tabfile *f);

/* Give up the table of F if nobody has mapped it for IDLE_NS; it may come back at once, and is not counted.
 */
void tabroom_tidy(struct tabroom *r, struct tabfile *f, uint64_t idle_ns);

#endif
