/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * heat - a heat map of waits as a page: when they began, by how long they took.
 *
 * A cell is a range of times and a range of durations. It has exact counts and sums by thread, kind and
 * stack. A page has at most HEAT_ENTRIES_MAX of these: beyond that, the stacks of least time of each cell,
 * then their threads, become "other", and the page says so. So its size has a bound, however many waits
 * there are. Its data, besides what timeline.h puts:
 *
 *	{..., "binNs": of a column, "columns": N, "edges": [ns, ...] lower ends of the rows and the end of the
 *	 last, "otherThreads": of the waits' threads, how many are not in "threads",
 *	 "entries": N, "cell", "thread", "kind", "stack", "count", "sum": base64}
 *
 * The last six have a number for each entry: the difference of its cell (row * columns + column) to that of
 * the entry before; a thread and a stack plus 1, 0 for other ones; the kind; how many waits, and their time.
 */
#ifndef STACKTOOLS_FLAME_HEAT_H
#define STACKTOOLS_FLAME_HEAT_H

#include "flame/timeline.h"

#define HEAT_COLUMNS 240 /* at most */
#define HEAT_ENTRIES_MAX 300000
#define HEAT_THREADS_MAX 100

/* 0 or -ENOMEM; the out keeps errors of writing. */
int heat_put(struct out *o, const struct timeline *t, const char *title, struct err *e);

#endif
