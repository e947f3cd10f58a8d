/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ladder - how many frames, distinct addresses and files have their names
 * from where, and what it took.
 */
#ifndef STACKTOOLS_LADDER_H
#define STACKTOOLS_LADDER_H

#include "base/bytes.h"
#include "base/intern.h"
#include "symbols/frame.h"
#include "symbols/modules.h"

/* Zero it. */
struct ladder {
	uint64_t frames[FRAME_SOURCES], addresses[FRAME_SOURCES], files[FRAME_SOURCES];
	uint64_t unsure; /* frames with the name of the function before the address */
	uint64_t with_line, with_inlined, inlined; /* frames; calls that were inlined into these */
	struct idmap seen; /* (step, module) */
};

/* F stands for TIMES frames. 0 or -ENOMEM. */
int ladder_add(struct ladder *l, const struct frame *f, uint64_t times);
void ladder_free(struct ladder *l);

/* As lines for people, PREFIX before each; S may be NULL. */
void ladder_text(struct buf *b, const struct ladder *l, const struct modules_stats *s, const char *prefix);

#endif
