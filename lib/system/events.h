/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * events - process events as they happen: fork, exec, mmap of code, renames, exit.
 *
 * A perf dummy event (perf_event_open(2), PERF_COUNT_SW_DUMMY) delivers mmap2,
 * comm and task records with CLOCK_MONOTONIC timestamps, through a buffer for
 * each CPU. The events of all CPUs are reported in order of time. The kernel does
 * not report munmap.
 *
 * Of the whole machine, or of some processes alone: then each of their threads
 * has an event for each CPU, which the threads and processes that it starts
 * inherit, so that others pay nothing. The kernel ends the events of a process
 * that executes a program with other privileges (set-user-ID, file
 * capabilities, not readable), and reports its threads as ended: to follow it,
 * procevents_widen().
 */
#ifndef STACKTOOLS_SYSTEM_EVENTS_H
#define STACKTOOLS_SYSTEM_EVENTS_H

#include "base/err.h"
#include "base/base.h"

enum procevent_type {
	PROCEVENT_MMAP = 1, /* an executable mapping was made */
	PROCEVENT_COMM, /* thread TID of PID is now called `comm` */
	PROCEVENT_EXEC, /* like COMM, by an exec: all earlier mappings are gone */
	PROCEVENT_FORK, /* PID is new (a process when parent != pid, else thread TID) */
	PROCEVENT_EXIT, /* thread TID of PID ended */
	PROCEVENT_LOST, /* `lost` records did not fit the buffer */
};

struct procevent {
	enum procevent_type type;
	uint32_t pid, tid; /* in this process's PID namespace */
	uint32_t parent; /* FORK */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t lost; /* LOST */
	uint64_t start, end, offset, inode; /* MMAP */
	uint32_t prot, flags, dev_major, dev_minor;
	const char *text; /* MMAP: path, "" for anonymous; COMM, EXEC: the name */
};

#define PROCEVENTS_SETTLE_NS 1000000u /* a drain with SETTLE keeps younger events for the next one */

struct procevents;

struct procevents_opts {
	bool prompt; /* the descriptor becomes readable at each event, otherwise when a buffer is half full */
	bool some; /* only of the processes that procevents_add() names */
	bool children; /* with `some`: also of those that they start */
};

/*
 * On success the caller owns *RET. -EACCES or -EPERM if perf_event_paranoid
 * forbids it. With `some`, a thread makes the kernel ready for what
 * procevents_add() does, which takes it a grace period of RCU: do other things
 * in between. That call, procevents_widen() and procevents_close() wait for it.
 */
int procevents_open(const struct procevents_opts *o, struct procevents **ret, struct err *e);
void procevents_close(struct procevents *p); /* NULL is fine */

/*
 * Report the events of process PID, too; nothing to do without `some`. *NEW
 * (NULL is fine) is set if some of its threads were not watched before. When its
 * threads are more than descriptors are to be had, P becomes one of the whole
 * machine. A process that has ended is not an error.
 */
int procevents_add(struct procevents *p, uint32_t pid, bool *new, struct err *e);

/* When an event's descriptor becomes readable, and who inherits it. */
struct procevent_how {
	bool prompt; /* as procevents_opts.prompt */
	bool inherit_thread; /* only what a thread starts in its own process; Linux 5.13 */
};

/* The event of thread TID, -1 = of the whole machine, on CPU, not enabled yet; or -errno. */
int procevent_open(const struct procevent_how *how, int32_t tid, uint32_t cpu);

/* From now on FN opens what procevents_add() needs, as procevent_open() does for those who may. */
typedef int procevent_open_fn(void *ctx, const struct procevent_how *how, int32_t tid, uint32_t cpu);
void procevents_open_by(struct procevents *p, procevent_open_fn *fn, void *ctx);

/* Does P report the events of the whole machine, or of no process at all? */
bool procevents_of_all(const struct procevents *p);
bool procevents_of_none(const struct procevents *p);

/* From now on, report the events of the whole machine. Needs no privileges. */
int procevents_widen(struct procevents *p, struct err *e);

/* Events begin now: no earlier one is reported or lost. Needs no privileges. */
int procevents_start(struct procevents *p, struct err *e);

/*
 * Interrupt each CPU. When this returns true, whatever had begun there with interrupts disabled has ended: a
 * program at sched_switch, say. Takes microseconds, where the kernel's own way to wait for that takes some
 * ten milliseconds. False if it is not possible; P may be NULL. Needs no privileges.
 */
bool procevents_interrupt(struct procevents *p);

/* For epoll(7). */
int procevents_fd(const struct procevents *p);

/*
 * From now on, call FN for each new mapping and each exec as soon as a drain
 * reads it. The drain reports it again in its order.
 */
void procevents_at_once(struct procevents *p, void (*fn)(void *ctx, const struct procevent *ev), void *ctx);

/* Whether the last drain kept events back. Then another one is due within two milliseconds. */
bool procevents_pending(const struct procevents *p);

/*
 * Report all events up to now. With SETTLE, events of the last millisecond are
 * kept for the next call, because an earlier one may still arrive from another
 * CPU. An event is valid only during the call of FN.
 */
void procevents_drain(
	struct procevents *p, bool settle, void (*fn)(void *ctx, const struct procevent *ev), void *ctx);

/*
 * Move the events from the kernel's buffers, which would overflow while nothing
 * drains them, to memory, for the next drain. It keeps some 32 MiB at most: if
 * the buffers overflow then, the loss is reported as always.
 */
void procevents_gather(struct procevents *p);

#endif
