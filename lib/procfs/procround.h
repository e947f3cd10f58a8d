/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procround - rounds of looks at all threads of a recording by /proc: who is
 * there, what each did, and which waits that makes.
 */
#ifndef STACKTOOLS_PROCROUND_H
#define STACKTOOLS_PROCROUND_H

#include "procfs/proclook.h"
#include "procfs/procrows.h"
#include "procfs/procset.h"
#include "procfs/procstacks.h"
#include "procfs/procthreads.h"
#include "procfs/proctold.h"
#include "procfs/ptreach.h"
#include "record/options.h"

/* The pointers are the caller's, and stay; what is below them is begun by procround_init(). */
struct procround {
	const struct recorder_opts *o;
	struct ptreach reach; /* how others are looked at */
	struct proctab *procs;
	struct procthreads *threads;
	struct procstacks *places;
	struct procrows *rows; /* where waits go */
	struct proctold *told; /* and counts */
	struct procset set;
	struct proclook look;
	uint64_t period_ns; /* between looks, as asked for */
	uint64_t cost_ns; /* of the last round: time on a CPU */
	uint64_t scan_due_ns; /* when threads are looked for next, */
	uint64_t scanned_ns; /* and when they were last; 0 = never */
	uint64_t since_ns; /* waits that are found now began after this */
	uint64_t boot_ahead_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
	struct cap_stack walked; /* by --ptrace, of the thread at hand; no frames = it was not */
	uint64_t began_ns; /* the round at hand */
	bool last; /* it is the last one */
	bool baseline; /* threads that are found now were there before */
};

void procround_init(struct procround *r, unsigned int wanted); /* see proclook_init() */
void procround_release(struct procround *r); /* what it holds */

/* Threads of the next round were there before: all count from then on. */
void procround_before(struct procround *r);

/* Process PID, a command, begins now: it counts from here on. */
void procround_command(struct procround *r, uint32_t pid);

void procround_look(struct procround *r);

/* The last round, which counts as made at once: returns when it began. */
uint64_t procround_last(struct procround *r);

/* Process TGID has a user frame where nothing is known to be mapped: its mappings are read again, but not all
 * the time. */
void procround_rescan(struct procround *r, uint32_t tgid);

/* The recording ends: every wait that goes on is handed out as it is now. */
void procround_end(struct procround *r);

#endif
