/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recstats - what a recording has seen, recorded and lost so far, and how that
 * is told in the capture.
 */
#ifndef STACKTOOLS_RECSTATS_H
#define STACKTOOLS_RECSTATS_H

#include "capture/stats.h"
#include "capture/writer.h"
#include "offcpu_abi.h"
#include "record/jitkeep.h"
#include "record/namewant.h"
#include "record/proctab.h"
#include "record/snapset.h"
#include "record/stacktab.h"
#include "record/unwinder.h"
#include "system/broker.h"

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
	struct asker_stats opener;
	const char *privileges; /* what was given up, kept and confined */
	const char *degraded; /* what works less well here and why; "" = nothing */
};

/* Write every counter of ST; names: docs/capture.5 and offcpu-record(1). */
void recstats_write(const struct recorder_stats *st, struct capwrite *w);

#endif
