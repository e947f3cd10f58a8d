/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * offcpu - the BPF side of off-CPU recording: load, attach, drain.
 *
 * The maps, keys and events are described in bpf/offcpu_abi.h, which both sides
 * include. Order of calls: load, ask for targets, attach, start, then drain
 * and swap as often as wanted, freeze, close. bpfcheck uses load
 * and attach alone to find out whether the real programs work here.
 */
#ifndef STACKTOOLS_OFFCPU_H
#define STACKTOOLS_OFFCPU_H

#include "base/err.h"

#include "offcpu_abi.h"
#include "record/offcpuopts.h"

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
 * Open, size and load the programs for OPTS; nothing runs yet. The story of
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
void offcpu_leave_out(struct offcpu *o, uint32_t worker, uint32_t opener);

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

/*
 * Put an empty aggregation map in place, wait until no CPU uses the old one
 * (the kernel's update of a map in map does), drain the ring buffer, and hand
 * out the samples of the old map. So every stack that a sample names came
 * before it, or was lost.
 */
int offcpu_swap(struct offcpu *o, const struct offcpu_sink *sink, struct err *e);

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
