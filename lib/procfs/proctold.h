/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proctold - what a recording by /proc has seen, estimated and missed: as
 * counters of the capture, and in words.
 */
#ifndef STACKTOOLS_PROCTOLD_H
#define STACKTOOLS_PROCTOLD_H

#include "capture/stats.h"
#include "procfs/procwait.h"
#include "record/counters.h"
#include "record/names.h"
#include "system/worker.h"

/* Waits, and their time. */
struct proctold_sum {
	uint64_t n, ns;
};

struct proctold {
	uint64_t start_ns, now_ns, bytes;
	uint32_t hz;
	uint64_t looks, late, left_out; /* see docs/capture.5 */
	uint64_t look_ns, look_max_ns; /* time on a CPU that they took */
	uint64_t threads, unchecked; /* that were looked at; of them, without schedstat */
	uint64_t ended; /* threads that ended: what they did since their last look is not known */
	uint64_t stops, stopped_ns, longest_stop_ns; /* of threads, by --ptrace */
	struct proctold_sum seen, recorded, preempted, state, min, max, unseen;
	struct procwait_sums sums;
	/* threads, by what of them could not be read */
	uint64_t no_syscall, no_stack, no_wchan;
	uint64_t no_user_walk; /* times that --ptrace gave no stack; the first one's story: */
	char walk_why[512];
	uint64_t names_overflow;
	/* lost */
	uint64_t skipped; /* threads beyond PROCSET_MAX, at most at one time */
	uint64_t unread; /* threads of which nothing could be read */
	uint64_t rows_lost;
	struct asker_stats looker, opener;
	struct proctab_stats procs;
	struct stacktab_stats stacks;
	struct capends user;
	bool by_name;
	struct namewant_stats names;
	const char *degraded; /* "" = nothing */
	const char *privileges; /* what was given up, kept and confined */
};

/* The sum of what is counted as lost.*. */
uint64_t proctold_lost(const struct proctold *t);

void proctold_write(const struct proctold *t, struct capwrite *w);
void proctold_progress(struct buf *b, const struct proctold *t);
void proctold_summary(struct buf *b, const struct proctold *t, const struct rectext_told *told);

#endif
