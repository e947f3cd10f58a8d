/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * late_stacks - snapshots of user stacks that BPF could not walk yet (struct
 * offcpu_ev_snapshot), kept until their mappings and tables are known and they
 * are walked.
 *
 * A snapshot is walked by the mappings of its own time (record/processes.h), so
 * its process may be dead. Nothing uncertain is guessed: the wait then keeps
 * the stack that BPF found, and the reason is counted. At most LATE_STACKS_BYTES
 * are held; beyond LATE_STACKS_ANSWERS the oldest answers are forgotten.
 */
#ifndef STACKTOOLS_RECORD_LATE_STACKS_H
#define STACKTOOLS_RECORD_LATE_STACKS_H

#include "record/processes.h"
#include "record/stacks.h"
#include "record/unwind_tables.h"

#define LATE_STACKS_BYTES (16u << 20)
#define LATE_STACKS_ANSWERS 16384

struct late_stacks;

/* DEPTH: the maximum number of frames of a stack. On success *RET is the caller's. */
int late_stacks_new(uint32_t depth, struct late_stacks **ret, struct err *e);
void late_stacks_free(struct late_stacks *s); /* NULL is fine */

/* Keep a copy of EV; if there is no room for it, the stack that BPF found is the answer. */
void late_stacks_add(struct late_stacks *s, const struct offcpu_ev_snapshot *ev);

/* What snapshots are walked with. */
struct late_stacks_by {
	const struct process_table *procs;
	struct tableset *tables;
	struct stack_table *stacks; /* the walked stacks go here */
	uint64_t settled_ns; /* process events up to this time are in PROCS */
	uint64_t late_ns; /* a snapshot older than this waits no longer */
};

/* Walk the snapshots that can be walked; the others wait, up to BY's late_ns. LAST: they wait no longer. */
void late_stacks_walk(struct late_stacks *s, const struct late_stacks_by *by, bool last);

/*
 * Does what was mapped at AT_NS in the process of KEY lead from address PC to the same caller as what was
 * mapped before: do both have a table, and in it the same rule for PC?
 */
bool late_stacks_same_rule(
	const struct late_stacks_by *by, const struct offcpu_key *key, uint64_t pc, uint64_t at_ns);

size_t late_stacks_waiting(const struct late_stacks *s); /* how many were not walked yet */

/* When to call late_stacks_walk() again, CLOCK_MONOTONIC; UINT64_MAX = when the next snapshot arrives. */
uint64_t late_stacks_due_ns(const struct late_stacks *s);

/*
 * If *ID is a snapshot's, replace it by the id of the stack that the wait has;
 * the snapshot may then be forgotten. False if it is not walked yet.
 */
bool late_stacks_answer(struct late_stacks *s, struct offcpu_stack_id *id);

/* Forget answers that were given, and the oldest answers beyond LATE_STACKS_ANSWERS. */
void late_stacks_tidy(struct late_stacks *s);

/* The stacks of all answers that were not given yet are in use: stack_table_hold(). */
void late_stacks_hold(const struct late_stacks *s, struct stack_table *stacks);

struct late_stacks_stats {
	uint64_t complete; /* walked to an outermost frame */
	uint64_t cut; /* walked further than BPF could, but not to the end, for the reason in the stack */
	uint64_t short_stack; /* the stack extends beyond the snapshot */
	uint64_t by_fp; /* goes on in code without a table, which cannot be walked afterwards */
	uint64_t unmapped; /* the mappings of that time are not known for certain */
	uint64_t late; /* a table or an event did not arrive in time */
	uint64_t memory; /* more than LATE_STACKS_BYTES, or out of memory */
};

void late_stacks_stats(const struct late_stacks *s, struct late_stacks_stats *ret);

#endif
