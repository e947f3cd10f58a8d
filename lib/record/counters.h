/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counters - what a recording with BPF has seen, recorded and lost so far.
 */
#ifndef STACKTOOLS_RECORD_COUNTERS_H
#define STACKTOOLS_RECORD_COUNTERS_H

#include "base/bytes.h"
#include "capture/counters.h"
#include "offcpu_abi.h"
#include "record/jit.h"
#include "record/late_stacks.h"
#include "record/names.h"
#include "record/processes.h"
#include "record/runtimes.h"
#include "record/stacks.h"
#include "record/unwinder.h"
#include "system/broker.h"
#include "system/command.h"

struct recorder_stats {
	uint64_t start_ns, now_ns;
	uint64_t bytes; /* written to the capture */
	const char *place; /* where they are: cap_writer_place() */
	uint64_t overwritten, overwritten_ns; /* waits that the ring has dropped */
	uint64_t waits, waits_ns; /* in the capture: cap_writer_waits() */
	uint64_t rows_lost, rows_lost_ns; /* waits for which the recorder had no memory */
	uint64_t samples_lost; /* the same of samples of what threads executed */
	bool ptrace, deepest; /* as for counters_hint() */
	bool no_waits; /* as in counters */
	bool chosen; /* the user named what to record: all of that is wanted */
	char unseen[64]; /* whose waits had a beginning that was not reported, most recently */
	struct offcpu_counters bpf;
	struct process_table_stats procs;
	struct stack_table_stats stacks;
	bool by_table; /* user stacks are walked by unwind tables */
	struct unwinder_stats unwind;
	struct runtimes_stats runtimes;
	struct late_stacks_stats snaps;
	struct jit_store_stats jit;
	bool by_name; /* names of user frames are stored */
	struct name_requests_stats names;
	struct cap_outcomes user, cpu; /* how the user stacks of the waits ended, and those of samples */
	struct worker_stats broker;
	bool wakers; /* they are recorded; of waits that ended: */
	uint64_t wakers_known, wakers_missing;
	uint64_t children; /* of the targets, at the beginning, not recorded */
	const char *privileges; /* what was dropped, kept and sandboxed */
	const char *degraded; /* what works less well here and why; "" = nothing */
	const char *runtime_flags; /* file_table_runtime_flags() */
};

/* Add the counters of names; for both recorders. */
void counters_add_names(struct counters *c, const struct name_requests_stats *st);

/* Convert all of ST to counters, whose names are in capture/counters.c. RET points into ST. */
void record_stats_counters(const struct recorder_stats *st, struct counters *ret);

/*
 * record_text - a recording in words: its progress and its summary.
 */

void record_text_progress(struct buf *b, const struct recorder_stats *st);

struct record_text_report {
	const char *name; /* of the program */
	const char *path; /* of the capture; NULL = it is lost */
	const struct command *command; /* NULL = none */
	bool verbose; /* counters that are 0 too */
};

/* The head of the summary: the recording's length and size, and how the command ended. */
void record_text_head(struct buf *b, const struct counters *c, const struct record_text_report *reported,
	uint64_t ns, uint64_t bytes);

/* The summary, several lines: what was recorded, what was not, how the stacks ended, what was lost. */
void record_text_summary(
	struct buf *b, const struct recorder_stats *st, const struct record_text_report *reported);

#endif
