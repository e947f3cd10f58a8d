/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf - the BPF side of off-CPU recording: load, attach, drain.
 *
 * The maps, keys and events are described in bpf/offcpu_abi.h, which both sides
 * include. Order of calls: load, ask for targets, attach, start, then drain
 * and swap as often as wanted, freeze, close. bpfcheck uses load
 * and attach alone to find out whether the real programs work here.
 */
#ifndef STACKTOOLS_RECORD_BPF_H
#define STACKTOOLS_RECORD_BPF_H

#include "base/err.h"
#include "offcpu_abi.h"
#include "record/bpf_raw.h"
#include "record/kernel_btf.h"
#include "record/options.h"
#include "system/broker.h"

#include <pthread.h>

/*
 * aggmap - the two hash maps in which BPF sums waits: one in use, one spare.
 *
 * The map in use stands in the one slot of a map in map. An update of that
 * slot returns only after every BPF program that may hold the old map has
 * ended (the kernel waits for RCU), so the old one can be read and emptied
 * without losing an update.
 */

struct aggmap {
	int outer_fd; /* the map in map, of one slot */
	int fd, spare_fd; /* in use; waiting for its turn; 0 = none */
	uint32_t size, spare_size; /* elements */
	struct worker *broker; /* the caller's: makes larger maps when this process may not; NULL = none */
	pthread_t installer;
	bool installing;
	int installing_fd; /* the map that is put in place */
	int installed; /* what the installer came to; valid when `done` */
	int done; /* atomic */
};

/*
 * Create the map in map and both maps of SIZE elements, and begin to put one
 * in place: the kernel takes about ten milliseconds for that, so it is done
 * by a thread until aggmap_settle(). Release with aggmap_close().
 */
int aggmap_open(struct aggmap *m, uint32_t size, struct err *e);

/* Wait until the first map is in place. */
int aggmap_settle(struct aggmap *m, struct err *e);
void aggmap_close(struct aggmap *m); /* a zeroed one is fine */
int aggmap_swap(struct aggmap *m, struct err *e);

/*
 * Hand out every element of the spare map and delete it. When it had been half
 * full, a spare of twice the size takes its place (up to 4 million elements;
 * without memory it stays as it is). TAKE may be NULL.
 */
int aggmap_empty(struct aggmap *m,
	void (*take)(void *ctx, const struct offcpu_key *key, const struct offcpu_value *value), void *ctx,
	struct err *e);

/* Elements that the map in use has room for. */
uint32_t aggmap_room(const struct aggmap *m);

/*
 * taskiter - run a BPF iterator over tasks once.
 */

struct bpf_program;

/*
 * Run PROG (a section "kern_iter/task", see record/kernel_btf.h) over the threads of process PID, or over
 * all tasks: with PID 0, and where the kernel knows no such choice (before
 * Linux 6.1), so PROG has to look for itself. What it writes goes to TAKE
 * (NULL: nowhere), record by record of SIZE bytes. The first bare error of the
 * kernel is returned, with the step in the message.
 */
int taskiter_run(struct bpf_program *prog, uint32_t pid, size_t size,
	void (*take)(void *ctx, const void *record), void *ctx, struct err *e);

/*
 * offprogs - the programs and maps of bpf/offcpu.bpf.c: sized, loaded and
 * attached.
 *
 * The verifier takes most of a start, so there are three of the same object:
 * one makes the maps, and the two others use these, one with the programs
 * that run at events, one with the iterators, loaded by two threads. In mode raw
 * the maps are those of another object, rawprogs.
 */

struct offcpu_bpf; /* offcpu.skel.h */

struct offprogs {
	struct offcpu_bpf *base; /* maps and data, no program; with `raw` those of its object */
	struct offcpu_bpf *events; /* programs at tracepoints */
	struct offcpu_bpf *iters; /* programs that taskiter_run() runs */
	struct rawprogs *raw; /* mode raw: these, in place of events and iters; NULL = mode btf */
	struct bpf_hooks hook;
	int verifier_log; /* of the options */
	bool first_ns; /* the sets' ids need no translation: first PID namespace, or mode raw */
	char limits[512]; /* what this kernel does not let them do, and why; "; " between, "" = nothing */
};

/*
 * In place of offprogs_load(), for who wants to know about each program by
 * itself: the maps, with P to be released as above; then the program NAME alone
 * over these maps, as often as wanted. Whatever comes of it, release *RET with
 * offcpu_bpf__destroy().
 */
int offprogs_load_maps(struct offprogs *p, const struct offcpu_opts *opts, int agg_fd, struct err *e);
int offprogs_load_one(struct offprogs *p, const char *name, struct offcpu_bpf **ret, struct err *e);

struct offcpu;

/* What is drained goes here; any may be NULL (but for offcpu_images(), which needs `image`). Pointers are
 * valid during the call only. */
struct offcpu_sink {
	void *ctx;
	void (*stack)(void *ctx, const struct offcpu_ev_stack *ev);
	void (*thread)(void *ctx, const struct offcpu_ev_thread *ev);
	void (*image)(void *ctx, const struct offcpu_ev_image *ev);
	void (*snapshot)(void *ctx, const struct offcpu_ev_snapshot *ev); /* `stack` has `bytes` only */
	void (*sample)(void *ctx, const struct offcpu_key *key, const struct offcpu_value *value);
};

/*
 * Open, size and load the programs for OPTS; nothing runs yet. The message of
 * a failure names the step, the missing capability or kernel feature, and the
 * remedy. On success release *RET with offcpu_close().
 */
int offcpu_load(const struct offcpu_opts *opts, struct offcpu **ret, struct err *e);

/* What cannot be done on this kernel, or with opts.raw; "" = nothing. It lives as long as O. */
const char *offcpu_limits(const struct offcpu *o);

/* Targets, by ids of this process's PID namespace. */
int offcpu_ask_pid(struct offcpu *o, uint32_t pid, struct err *e);
int offcpu_ask_tid(struct offcpu *o, uint32_t tid, struct err *e);
int offcpu_ask_comm(struct offcpu *o, const char *comm, struct err *e); /* name of the group leader */

/* The process PID (a child, alive) becomes a target when it next execs. */
int offcpu_ask_exec(struct offcpu *o, uint32_t pid, struct err *e);

/*
 * Hand the image of every process (of those in the cgroup, with
 * opts.use_cgroup and opts.all), or with PID (not 0) of that one, to the sink:
 * what it needs tables for before offcpu_start().
 */
int offcpu_images(struct offcpu *o, uint32_t pid, const struct offcpu_sink *sink, struct err *e);

/* Processes WORKER and OPENER (0 = none) are the recorder's: with opts.all they are left out, as it is. */
void offcpu_leave_out(struct offcpu *o, uint32_t worker, uint32_t broker);

/*
 * Once loaded: does the kernel refuse what a recording does from then on (maps by descriptor, iterators)
 * to a thread without capabilities? True before Linux 5.19. It is tried, by a thread of its own.
 */
bool offcpu_needs_caps(struct offcpu *o);

/* Nothing that process PID waits for counts, until it is called with 0. */
void offcpu_hold(struct offcpu *o, uint32_t pid);

/* Attach everything; switches are looked at, but nothing is recorded before offcpu_start(). */
int offcpu_attach(struct offcpu *o, struct err *e);

/*
 * Record from now on: marks the targets, sets the start time (*START_NS,
 * CLOCK_MONOTONIC) and looks at the threads that wait already.
 */
int offcpu_start(struct offcpu *o, uint64_t *start_ns, struct err *e);

/*
 * Walk the stacks of waits in progress that lacked an unwind table when they
 * began. What is left without one keeps its reason; with opts.raw that is all.
 */
int offcpu_look_again(struct offcpu *o, struct err *e);

/* For epoll(7): readable when much is in the ring buffer, an image, or a thread's first snapshot. */
int offcpu_fd(const struct offcpu *o);

/* Hand what the ring buffer holds to the sink. */
void offcpu_drain(struct offcpu *o, const struct offcpu_sink *sink);

/* The same in steps, so that other work can be done while the kernel waits: begin, poll, end. */
void offcpu_begin_swap(struct offcpu *o);
bool offcpu_swapped(struct offcpu *o);
int offcpu_end_swap(struct offcpu *o, const struct offcpu_sink *sink, struct err *e);

/* True when the aggregation map is filling up and should be swapped early. */
bool offcpu_crowded(const struct offcpu *o);

/*
 * Stop recording, *STOP_NS being the end of what was recorded, and hand out
 * everything that is left, the waits that are still open among it (count 1,
 * OFFCPU_F_OPEN). Filters are applied to open waits as to any other.
 */
int offcpu_freeze(struct offcpu *o, const struct offcpu_sink *sink, uint64_t *stop_ns, struct err *e);

/* The sum over all CPUs. */
void offcpu_counters(struct offcpu *o, struct offcpu_counters *ret);

/* Detaches and frees; NULL is fine. */
void offcpu_close(struct offcpu *o);

#endif
