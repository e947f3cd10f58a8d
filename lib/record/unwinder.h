/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwinder - keeps what BPF walks by in step with the processes: for each
 * image its executable mappings, for each mapping its table.
 *
 * An image is known by (tgid, start time, number of execs), as BPF sees it;
 * its mappings are read from /proc after that identity was seen, so that what
 * is published under it never belongs to an earlier image: BPF compares the
 * identity at every walk. Mappings are read again when something executable
 * was mapped; what an exec maps not before BPF tells of the new image. The
 * mappings themselves: mapblock_*(). Not for several threads.
 */
#ifndef STACKTOOLS_RECORD_UNWINDER_H
#define STACKTOOLS_RECORD_UNWINDER_H

#include "offcpu_abi.h"
#include "record/processes.h"
#include "record/unwind_tables.h"

struct unwinder;

/* See tableset_open(): it forks. On success *RET is the caller's. */
int unwinder_open(const struct tableset_opts *opts, struct unwinder **ret, struct err *e);
void unwinder_close(struct unwinder *u); /* NULL is fine */

/* The maps for BPF. */
void unwinder_fds(const struct unwinder *u, struct unwindspace_fds *ret);

struct tableset *unwinder_tables(struct unwinder *u); /* stay U's */

int unwinder_fd(const struct unwinder *u); /* as tableset_fd(), */
uint32_t unwinder_worker(const struct unwinder *u); /* as tableset_worker() */

/* Ask for the tables of what process PID maps now: they are compiled meanwhile. */
void unwinder_prepare(struct unwinder *u, uint32_t pid);

/* Ask for the table of the file that this process has mapped at ADDR: others are about to map it. */
void unwinder_expect(struct unwinder *u, const void *addr);

/* BPF saw an image whose mappings it lacks. They are read by unwinder_service(), the newest image's first. */
void unwinder_image(struct unwinder *u, const struct offcpu_ev_image *ev);

/*
 * No process events will come: forks come by unwinder_forked(), what was read
 * of a process is believed if it is that image still afterwards, and PROCS,
 * which outlives U, hears what is to be read again.
 */
void unwinder_without_events(struct unwinder *u, struct process_table *procs);
void unwinder_forked(struct unwinder *u, const struct offcpu_ev_image *ev);

/* That image may have mapped something since, of which no event told. */
void unwinder_stale(struct unwinder *u, const struct offcpu_ev_image *ev);

/* Forks and ends of processes, in order; and, the sooner the better, in any order, what they map and exec. */
void unwinder_event(struct unwinder *u, const struct procevent *ev);
void unwinder_mapped(struct unwinder *u, const struct procevent *ev);

/*
 * Do what is due: read mappings that changed and those of new images, take
 * tables that came (waiting for them up to TIMEOUT_MS; with 0 new images are
 * looked at for about a millisecond, else all of them). True when walks can
 * succeed now that could not before: waits in progress are worth another look.
 */
bool unwinder_service(struct unwinder *u, int timeout_ms);

/* When unwinder_service() has something to do again, CLOCK_MONOTONIC; 0 = now, UINT64_MAX = when an event
 * comes.
 */
uint64_t unwinder_due_ns(const struct unwinder *u);

/* Events may have been missed: read all mappings again. */
void unwinder_distrust(struct unwinder *u);

/*
 * An RCU grace period has passed. Forgets processes that ended, and has those
 * read again that missed a table which was dropped. At most once a second, so
 * that forks which used memory given up have been heard of.
 */
void unwinder_quiet(struct unwinder *u);

struct unwinder_stats {
	uint64_t procs; /* with mappings in the kernel's sight */
	uint64_t maps_cut; /* mappings beyond the limit of a process, or for which there was no memory */
	struct tableset_stats tables;
};

void unwinder_stats(const struct unwinder *u, struct unwinder_stats *ret);

#endif
