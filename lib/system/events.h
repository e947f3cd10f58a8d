/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * events - the life of processes as it happens: fork, exec, mmap of
 * code, renames, exit.
 *
 * A perf dummy event (perf_event_open(2), PERF_COUNT_SW_DUMMY) on every CPU
 * carries mmap2, comm and task records, stamped with CLOCK_MONOTONIC. Events
 * of all CPUs are handed out in the order of their time. Where the kernel can
 * (Linux 5.12), a second event tells the build ID of what is mapped, for files
 * that are gone before anyone can open them. munmap is not
 * reported by the kernel.
 */
#ifndef STACKTOOLS_SYSTEM_EVENTS_H
#define STACKTOOLS_SYSTEM_EVENTS_H

#include "base/err.h"
#include "capture/types.h"

enum procevent_type {
	PROCEVENT_MMAP = 1, /* an executable mapping was made */
	PROCEVENT_BUILD_ID, /* the mapping START to END is of a file with this build ID */
	PROCEVENT_COMM, /* thread TID of PID is now called `comm` */
	PROCEVENT_EXEC, /* as COMM, by an exec: all mappings before it are gone */
	PROCEVENT_FORK, /* PID is new (a process when parent != pid, else thread TID) */
	PROCEVENT_EXIT, /* thread TID of PID ended */
	PROCEVENT_LOST, /* `lost` records did not fit the buffer */
};

struct procevent {
	enum procevent_type type;
	uint32_t pid, tid; /* of this process's PID namespace */
	uint32_t parent; /* FORK */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t lost; /* LOST */
	uint64_t start, end, offset, inode; /* MMAP */
	uint32_t prot, flags, dev_major, dev_minor;
	struct cap_build_id build_id; /* BUILD_ID */
	const char *text; /* MMAP: path, "" for anonymous; COMM, EXEC: the name */
};

#define PROCEVENTS_SETTLE_NS 1000000u /* what a drain with SETTLE leaves for the next */

struct procevents;

/*
 * PROMPT: the descriptor is readable at each event, else when a buffer is half
 * full. On success *RET is the caller's. -EACCES or -EPERM when perf_event_paranoid
 * forbids it.
 */
int procevents_open(bool prompt, struct procevents **ret, struct err *e);
void procevents_close(struct procevents *p); /* NULL is fine */

/* For epoll(7). */
int procevents_fd(const struct procevents *p);

/*
 * From now on FN hears of each new mapping and each exec as soon as a drain
 * meets it, before and besides its turn.
 */
void procevents_at_once(struct procevents *p, void (*fn)(void *ctx, const struct procevent *ev), void *ctx);

/* Did the last drain keep events back? Then another one is due within two milliseconds. */
bool procevents_pending(const struct procevents *p);

/*
 * Hand out all events up to now; with SETTLE those of the last millisecond
 * are kept for the next call, for an earlier one may still be on its way on
 * another CPU. The event is valid during the call only.
 */
void procevents_drain(
	struct procevents *p, bool settle, void (*fn)(void *ctx, const struct procevent *ev), void *ctx);

#endif
