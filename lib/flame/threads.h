/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * threads - a time line of each thread as a page: what it waited for, and who ended that. Its data, besides
 * what timeline.h puts:
 *
 *	{..., "idleThreads": of the threads, how many at the end are idle, "wakers": [[name, thread or -1],
 *...], "samples": N, "nWhats": N, "whats": base64, "begin", "duration", "runnable", "what": base64,
 *"sampleBegin", "samplePeriod", "sampleWhat": base64}
 *
 * "whats" has for each the thread, the kind (0 of a sample), the waker plus 1 or 0, the stack, and flags: 1
 *open, 2 initial, 4 preempted. Events are in order of their beginning: its difference to that of the one
 *before, the time, and the runnable part plus 1, 0 if it is not known.
 */
#ifndef STACKTOOLS_FLAME_THREADS_H
#define STACKTOOLS_FLAME_THREADS_H

#include "flame/timeline.h"

/* 0 or -ENOMEM; the out keeps errors of writing. */
int threads_put(struct out *o, const struct timeline *t, const char *title, struct err *e);

#endif
