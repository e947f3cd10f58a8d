/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wakers - who ended the waits of a recording, from BPF's events to the capture's records.
 */
#ifndef STACKTOOLS_RECORD_WAKERS_H
#define STACKTOOLS_RECORD_WAKERS_H

#include "base/err.h"
#include "capture/writer.h"
#include "offcpu_abi.h"
#include "record/late_stacks.h"

struct waker_table;

int waker_table_new(struct waker_table **ret, struct err *e);
void waker_table_free(struct waker_table *t); /* NULL is fine */

/* Add a waker that BPF sent. A known one is ignored. */
void waker_table_add(struct waker_table *t, const struct offcpu_ev_waker *ev);

/*
 * False if a stack of the chain that begins with ID is not known yet (late_stacks_answer()); S may be
 * NULL.
 */
bool waker_table_ready(struct waker_table *t, const struct offcpu_stack_id *id, struct late_stacks *s);

/*
 * Where the process and the stacks of a waker go: set proc, kstack and ustack of WAKER, and the mapping
 * epoch in its flags, for KEY, which has the identity and stacks; it woke from WAKER's first_ns to LAST_NS.
 * False if out of memory.
 */
typedef bool waker_place(void *ctx, const struct offcpu_key *key, uint64_t last_ns, struct cap_waker *waker);

/*
 * Return the capture's id of waker ID, which ended waits that began from FIRST_NS to LAST_NS. Writes it and
 * its own wakers to W at their first use, and again when addresses of a process have another meaning. 0 if ID
 * never arrived, or out of memory.
 */
uint32_t waker_table_emit(struct waker_table *t, const struct offcpu_stack_id *id, uint64_t first_ns,
	uint64_t last_ns, waker_place *place, void *ctx, struct cap_writer *w);

/*
 * As stack_table_turn() and the others of its kind. A waker in use keeps its own wakers, and
 * waker_table_forget() holds the stacks of all that it keeps. T may be NULL.
 */
size_t waker_table_count(const struct waker_table *t);
void waker_table_turn(struct waker_table *t);
void waker_table_hold(struct waker_table *t, const struct offcpu_stack_id *id);
void waker_table_forget(struct waker_table *t, struct stack_table *stacks);

#endif
