/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * late_stacks - the snapshots of user stacks that BPF could not walk yet (struct
 * offcpu_ev_snapshot), until their mappings and tables are known and they are
 * walked.
 *
 * A snapshot is walked by what was mapped at its own time (record/processes.h), so its
 * process may be dead. What cannot be told for certain is not guessed: the wait keeps the
 * stack that BPF found, and the reason is counted. At most LATE_STACKS_BYTES are
 * held; of the answers the oldest that nobody asked for are forgotten.
 */
#ifndef STACKTOOLS_RECORD_LATE_STACKS_H
#define STACKTOOLS_RECORD_LATE_STACKS_H

#include "record/processes.h"
#include "record/stacks.h"
#include "record/unwind_tables.h"

#define LATE_STACKS_BYTES (16u << 20)
#define LATE_STACKS_ANSWERS 16384

struct late_stacks;

/* DEPTH: frames of a stack at most. On success *RET is the caller's. */
int late_stacks_new(uint32_t depth, struct late_stacks **ret, struct err *e);
void late_stacks_free(struct late_stacks *s); /* NULL is fine */

/* A copy of EV is kept; where there is no room for it, the stack that BPF found is the answer. */
void late_stacks_add(struct late_stacks *s, const struct offcpu_ev_snapshot *ev);

/* What snapshots are walked by; the walked stacks go to STACKS. */
struct late_stacks_by {
	const struct process_table *procs;
	struct tableset *tables;
	struct stack_table *stacks;
	uint64_t settled_ns; /* process events up to this time are in PROCS */
	uint64_t late_ns; /* one that is older waits no longer */
};

/* Walk those that can be walked; the others wait, up to BY's late_ns. LAST: they have waited long enough. */
void late_stacks_walk(struct late_stacks *s, const struct late_stacks_by *by, bool last);

size_t late_stacks_waiting(const struct late_stacks *s); /* those that were not walked yet */

/* When late_stacks_walk() has something to do again, CLOCK_MONOTONIC; UINT64_MAX = when a snapshot comes. */
uint64_t late_stacks_due_ns(const struct late_stacks *s);

/*
 * If *ID is a snapshot's, put the stack in its place that its wait has; the
 * snapshot is then done with. False when it is not walked yet.
 */
bool late_stacks_answer(struct late_stacks *s, struct offcpu_stack_id *id);

/* Forget what was answered, and the oldest answers beyond LATE_STACKS_ANSWERS. */
void late_stacks_tidy(struct late_stacks *s);

struct late_stacks_stats {
	uint64_t complete; /* walked to an outermost frame */
	uint64_t cut; /* walked further than BPF could, but not to the end: by the walk's reasons */
	uint64_t short_stack; /* the stack goes beyond the snapshot */
	uint64_t by_fp; /* code without a table leads on, which is not walked afterwards */
	uint64_t unmapped; /* what was mapped then could not be told for certain */
	uint64_t late; /* a table or an event did not come in time */
	uint64_t memory; /* more than LATE_STACKS_BYTES, or there was none */
};

void late_stacks_stats(const struct late_stacks *s, struct late_stacks_stats *ret);

#endif
