/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwinder - what BPF walks stacks by, kept up to date with the processes: for
 * each image its executable mappings, for each mapping its table.
 *
 * An image is identified by (tgid, start time, number of execs), as BPF sees
 * it. Its mappings are read from /proc after BPF reported that identity, so
 * what is published under it never belongs to an earlier image: BPF compares
 * the identity at every walk. Mappings are read again when something executable
 * was mapped, but after an exec not before BPF reports the new image. Blocks of
 * mappings: mapblock_*(). Not thread-safe.
 */
#ifndef STACKTOOLS_RECORD_UNWINDER_H
#define STACKTOOLS_RECORD_UNWINDER_H

#include "offcpu_abi.h"
#include "record/processes.h"
#include "record/unwind_tables.h"

struct unwinder;

/* Forks, see tableset_open(). On success release *RET with unwinder_close(). */
int unwinder_open(const struct tableset_opts *opts, struct unwinder **ret, struct err *e);
void unwinder_close(struct unwinder *u); /* NULL is fine */

/* The maps for BPF. */
void unwinder_fds(const struct unwinder *u, struct unwindspace_fds *ret);

struct tableset *unwinder_tables(struct unwinder *u); /* belong to U */

int unwinder_fd(const struct unwinder *u); /* as tableset_fd(), */
uint32_t unwinder_worker(const struct unwinder *u); /* as tableset_worker() */
uint32_t unwinder_store(const struct unwinder *u); /* as tableset_store() */

/* Request the tables of what process PID maps now. They are compiled in the background. */
void unwinder_prepare(struct unwinder *u, uint32_t pid);

/* Request the table of the file that this process has mapped at ADDR: others are about to map it. */
void unwinder_expect(struct unwinder *u, const void *addr);

/* BPF reported an image whose mappings it lacks. unwinder_service() reads them, the newest image first. */
void unwinder_image(struct unwinder *u, const struct offcpu_ev_image *ev);

/*
 * Work without process events. unwinder_forked() reports forks. Mappings are
 * trusted if the process is still the same image after they were read. Images
 * whose mappings changed are marked as stale in PROCS, which must outlive U.
 */
void unwinder_without_events(struct unwinder *u, struct process_table *procs);
void unwinder_forked(struct unwinder *u, const struct offcpu_ev_image *ev);

/* Image EV may have mapped something that no event reported. */
void unwinder_stale(struct unwinder *u, const struct offcpu_ev_image *ev);

/*
 * unwinder_event() takes forks and ends of processes, in order.
 * unwinder_mapped() takes their mappings and execs, as early as possible, in
 * any order.
 */
void unwinder_event(struct unwinder *u, const struct procevent *ev);
void unwinder_mapped(struct unwinder *u, const struct procevent *ev);

/*
 * Do what is due: read mappings that changed and those of new images, and take
 * the tables that have arrived. Waits up to TIMEOUT_MS for tables; with 0,
 * reads new images for about a millisecond, else all of them. True if walks may
 * succeed now that failed before: walk the waits in progress again.
 */
bool unwinder_service(struct unwinder *u, int timeout_ms);

/*
 * When unwinder_service() has something to do again, CLOCK_MONOTONIC; 0 = now,
 * UINT64_MAX = when an event comes.
 */
uint64_t unwinder_due_ns(const struct unwinder *u);

/*
 * Since when does BPF walk process TGID by mappings that were read after TIME_NS? 0 = it does not yet. It
 * does if the process has none, or has ended.
 */
uint64_t unwinder_since(const struct unwinder *u, uint32_t tgid, uint64_t time_ns);

/* Events may have been missed: read all mappings again. */
void unwinder_distrust(struct unwinder *u);

/*
 * An RCU grace period has passed. Forgets processes that ended, and reads those
 * again that missed a dropped table. Call it at most once a second, so that
 * forks that used dropped memory have been reported by then.
 */
void unwinder_quiet(struct unwinder *u);

struct unwinder_stats {
	uint64_t procs; /* with mappings that BPF can see */
	uint64_t maps_cut; /* mappings beyond the limit of a process, or for which there was no memory */
	struct tableset_stats tables;
};

void unwinder_stats(const struct unwinder *u, struct unwinder_stats *ret);

#endif
