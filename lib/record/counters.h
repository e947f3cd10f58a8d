/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counters - what a recording has seen, recorded and lost so far, and how that
 * is told in the capture.
 */
#ifndef STACKTOOLS_RECORD_COUNTERS_H
#define STACKTOOLS_RECORD_COUNTERS_H

#include "base/bytes.h"
#include "capture/stats.h"
#include "capture/writer.h"
#include "offcpu_abi.h"
#include "record/jit.h"
#include "record/late_stacks.h"
#include "record/names.h"
#include "record/processes.h"
#include "record/stacks.h"
#include "record/unwinder.h"
#include "system/broker.h"
#include "system/command.h"

struct recorder_stats {
	uint64_t start_ns, now_ns;
	uint64_t bytes; /* written */
	uint64_t waits, waits_ns;
	uint64_t rows_lost; /* waits for which the recorder had no memory */
	struct offcpu_counters bpf;
	struct proctab_stats procs;
	struct stacktab_stats stacks;
	bool by_table; /* user stacks are walked by unwind tables */
	struct unwinder_stats unwind;
	struct snapset_stats snaps;
	struct jitkeep_stats jit;
	bool by_name; /* names of user frames are stored, at the end */
	struct namewant_stats names;
	struct capends user; /* how the user stacks of the waits ended */
	uint64_t lost; /* the sum of all lost.* counters that count waits or events */
	struct worker_stats broker;
	const char *privileges; /* what was given up, kept and confined */
	const char *degraded; /* what works less well here and why; "" = nothing */
};

/* Write every counter of ST; names: docs/capture.5 and offcpu-record(1). */
void recstats_write(const struct recorder_stats *st, struct capwrite *w);

/*
 * rectext - a recording in words: its progress and its summary.
 */

/* "5.0 s  1234 waits  56 stacks  7 processes  0 lost", without a newline. */
void rectext_progress(struct buf *b, const struct recorder_stats *st);

struct rectext_told {
	const char *name; /* of the program */
	const char *path; /* of the capture */
	const struct command *command; /* NULL = none */
	bool verbose; /* zeroes too */
};

/* The first line of a summary. ABOUT: the waits are estimates. */
struct rectext_head {
	uint64_t ns; /* of the recording */
	uint64_t waits, waits_ns;
	uint64_t stacks, processes, bytes;
	bool about;
};

void rectext_head(struct buf *b, const struct rectext_head *h, const struct rectext_told *told);

/* What was given up, kept and confined; NULL or "" = nothing is said. */
void rectext_privileges(struct buf *b, const char *privileges);

/* What became of the command. */
void rectext_command(struct buf *b, const struct command *c);

/* "12.345": nanoseconds as seconds, rounded to thousandths. */
void rectext_seconds(struct buf *b, uint64_t ns);

/* The summary, several lines: what was recorded, what was left out, how the stacks ended, what was lost. */
void rectext_summary(struct buf *b, const struct recorder_stats *st, const struct rectext_told *told);

#endif
