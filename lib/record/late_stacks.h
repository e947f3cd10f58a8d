/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * late_stacks - the snapshots of user stacks that BPF could not walk yet (struct
 * offcpu_ev_snapshot), until their mappings and tables are known and they are
 * walked.
 *
 * A snapshot is walked by what was mapped at its own time (record/processes.h), so its
 * process may be dead. What cannot be told for certain is not guessed: the wait keeps the
 * stack that BPF found, and the reason is counted. At most SNAPSET_BYTES are
 * held; of the answers the oldest that nobody asked for are forgotten.
 */
#ifndef STACKTOOLS_RECORD_LATE_STACKS_H
#define STACKTOOLS_RECORD_LATE_STACKS_H

#include "record/processes.h"
#include "record/stacks.h"
#include "record/unwind_tables.h"

#define SNAPSET_BYTES (16u << 20)
#define SNAPSET_ANSWERS 16384

struct snapset;

/* DEPTH: frames of a stack at most. On success *RET is the caller's. */
int snapset_new(uint32_t depth, struct snapset **ret, struct err *e);
void snapset_free(struct snapset *s); /* NULL is fine */

/* A copy of EV is kept; where there is no room for it, the stack that BPF found is the answer. */
void snapset_add(struct snapset *s, const struct offcpu_ev_snapshot *ev);

/* What snapshots are walked by; the walked stacks go to STACKS. */
struct snapset_by {
	const struct proctab *procs;
	struct tableset *tables;
	struct stacktab *stacks;
	uint64_t settled_ns; /* process events up to this time are in PROCS */
	uint64_t late_ns; /* one that is older waits no longer */
};

/* Walk those that can be walked; the others wait, up to BY's late_ns. LAST: they have waited long enough. */
void snapset_walk(struct snapset *s, const struct snapset_by *by, bool last);

size_t snapset_waiting(const struct snapset *s); /* those that were not walked yet */

/* When snapset_walk() has something to do again, CLOCK_MONOTONIC; UINT64_MAX = when a snapshot comes. */
uint64_t snapset_due_ns(const struct snapset *s);

/*
 * If *ID is a snapshot's, put the stack in its place that its wait has; the
 * snapshot is then done with. False when it is not walked yet.
 */
bool snapset_answer(struct snapset *s, struct offcpu_stack_id *id);

/* Forget what was answered, and the oldest answers beyond SNAPSET_ANSWERS. */
void snapset_tidy(struct snapset *s);

struct snapset_stats {
	uint64_t complete; /* walked to an outermost frame */
	uint64_t cut; /* walked further than BPF could, but not to the end: by the walk's reasons */
	uint64_t short_stack; /* the stack goes beyond the snapshot */
	uint64_t by_fp; /* code without a table leads on, which is not walked afterwards */
	uint64_t unmapped; /* what was mapped then could not be told for certain */
	uint64_t late; /* a table or an event did not come in time */
	uint64_t memory; /* more than SNAPSET_BYTES, or there was none */
};

void snapset_stats(const struct snapset *s, struct snapset_stats *ret);

#endif
