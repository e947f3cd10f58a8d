/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf - the BPF side of off-CPU recording: load, attach, drain.
 *
 * bpf/offcpu_abi.h, which both sides include, describes the maps, keys and
 * events. Order of calls: load, add targets (offcpu_ask_*()), attach, start,
 * then drain and swap any number of times, freeze, close. bpfcheck uses only
 * load and attach, to check whether the real programs work here.
 */
#ifndef STACKTOOLS_RECORD_BPF_H
#define STACKTOOLS_RECORD_BPF_H

#include "base/err.h"
#include "offcpu_abi.h"
#include "record/bpf_raw.h"
#include "record/options.h"
#include "system/broker.h"
#include "system/events.h"
#include "symbols/kallsyms.h"
#include "system/kernel_btf.h"

#include <pthread.h>

/*
 * aggmap - the two hash maps in which BPF sums waits: one in use, one spare.
 *
 * The map in use is in the only slot of a map in map. An update of that slot
 * returns only after every BPF program that may hold the old map has ended
 * (the kernel waits for RCU), so the old map can be read and emptied without
 * losing an update.
 */

struct aggmap {
	int outer_fd; /* the map in map, one slot */
	int fd, spare_fd; /* in use; spare; 0 = none */
	uint32_t size, spare_size; /* elements */
	bool wakers; /* the keys have wakers, else OFFCPU_KEY_BARE bytes */
	struct worker *broker; /* the caller's: creates larger maps if this process may not; NULL = none */
	pthread_t installer;
	bool installing;
	int installing_fd; /* the map being put into the slot */
	void (*before)(void *ctx); /* called in that thread before a swap; NULL = nothing is */
	void *before_ctx;
	int installed; /* result of the installer, 0 or -errno; valid when `done` */
	int done; /* atomic */
};

/*
 * Create the map in map and both maps of SIZE elements, with WAKERS in their keys or not, and start a thread
 * that puts one into the slot, which takes the kernel about ten milliseconds;
 * aggmap_settle() waits for it. Release with aggmap_close().
 */
int aggmap_open(struct aggmap *m, uint32_t size, bool wakers, struct err *e);

/* Wait until the first map is in the slot. */
int aggmap_settle(struct aggmap *m, struct err *e);
void aggmap_close(struct aggmap *m); /* a zeroed one is fine */
int aggmap_swap(struct aggmap *m, struct err *e);

/*
 * Pass every element of the spare map to TAKE (may be NULL) and delete it. If
 * the map was at least half full, replace it by one of twice the size (up to 4
 * million elements; if that cannot be created, keep the old one).
 */
typedef void aggmap_take(void *ctx, const struct offcpu_key *key, const struct offcpu_value *value);
int aggmap_empty(struct aggmap *m, aggmap_take *take, void *ctx, struct err *e);

/* The same for the map in use, at the end: no program may be running that adds to it. */
int aggmap_finish(struct aggmap *m, aggmap_take *take, void *ctx, struct err *e);

/* Capacity of the map in use, in elements. */
uint32_t aggmap_room(const struct aggmap *m);

/*
 * taskiter - run a BPF iterator over tasks once.
 */

struct bpf_program;

/*
 * Run PROG (section "kern_iter/task", see system/kernel_btf.h) over the
 * threads of process PID; over all tasks if PID is 0 or the kernel cannot
 * select a process (before Linux 6.1), so PROG must filter by itself. Pass what
 * it writes to TAKE (NULL: discard it) in records of SIZE bytes. An error is
 * the kernel's -errno; the message names the step.
 */
int taskiter_run(struct bpf_program *prog, uint32_t pid, size_t size,
	void (*take)(void *ctx, const void *record), void *ctx, struct err *e);

/*
 * offprogs - the programs and maps of bpf/offcpu.bpf.c: sized, loaded and
 * attached.
 *
 * Verification takes most of the startup time, so the object is opened three
 * times: one instance creates the maps; the other two share them and are
 * loaded by two threads, one with the programs that run at events, one with
 * the iterators. In mode raw the maps belong to another object, rawprogs.
 */

struct offcpu_bpf; /* offcpu.skel.h */

struct offprogs {
	struct offcpu_bpf *base; /* maps and data, no program; with `raw` a view of that object's */
	struct offcpu_bpf *events; /* programs at tracepoints */
	struct offcpu_bpf *iters; /* programs that taskiter_run() runs */
	struct rawprogs *raw; /* mode raw: replaces events and iters; NULL = mode btf */
	struct bpf_hooks hook;
	int verifier_log; /* offcpu_opts.verifier_log */
	uint32_t scripts; /* the programs find those, as in offcpu_opts */
	bool iters_bare; /* the iterators were refused, and loaded without script frames */
	struct bpf_link **clocks; /* of the program at the clock of each CPU; NULL = none */
	size_t n_clocks;
	bool first_ns; /* target ids need no translation: first PID namespace, or mode raw */
	char limits[512]; /* what they cannot do on this kernel, and why; separated by "; ", "" = nothing */
};

/*
 * To test single programs: offprogs_load_maps() loads only the maps, once;
 * then each offprogs_load_one() loads program NAME alone over these maps.
 * Release *RET with offcpu_bpf__destroy(), even on failure. Nothing releases P:
 * it lasts until the process ends.
 */
int offprogs_load_maps(struct offprogs *p, const struct offcpu_opts *opts, int agg_fd, struct err *e);
int offprogs_load_one(struct offprogs *p, const char *name, struct offcpu_bpf **ret, struct err *e);

struct offcpu;

/*
 * Where drained events go. Any function may be NULL, except `image` in
 * offcpu_images(). Pointers are valid during the call only.
 */
struct offcpu_sink {
	void *ctx;
	void (*stack)(void *ctx, const struct offcpu_ev_stack *ev);
	void (*waker)(void *ctx, const struct offcpu_ev_waker *ev);
	void (*thread)(void *ctx, const struct offcpu_ev_thread *ev);
	void (*image)(void *ctx, const struct offcpu_ev_image *ev);
	void (*code)(void *ctx, const struct offcpu_ev_code *ev, size_t len);
	void (*method)(void *ctx, const struct offcpu_ev_method *ev, size_t len);
	void (*inlined)(void *ctx, const struct offcpu_ev_inlined *ev, size_t len);
	void (*snapshot)(void *ctx, const struct offcpu_ev_snapshot *ev); /* only `bytes` bytes of `stack` */
	void (*sample)(void *ctx, const struct offcpu_key *key, const struct offcpu_value *value);
	void (*life)(void *ctx, const struct offcpu_ev_life *ev);
	void (*waiting)(void *ctx, const struct offcpu_key *key); /* from offcpu_waiting() */
	/* from offcpu_held(); KIND is enum cap_stack_kind */
	void (*held_stack)(void *ctx, unsigned int kind, const struct offcpu_stack_id *id);
	void (*held_waker)(void *ctx, const struct offcpu_stack_id *id);
};

/*
 * Open, size and load the programs for OPTS; nothing runs yet. The error
 * message names the step, the missing capability or kernel feature, and the
 * remedy. Without script frames if the kernel refuses these, which is a limit
 * (offcpu_limits()). On success release *RET with offcpu_close().
 */
int offcpu_load(const struct offcpu_opts *opts, struct offcpu **ret, struct err *e);

/* Waits that began before the recording have no script frames: this kernel refused the program for them. */
bool offcpu_scripts_partial(const struct offcpu *o);

/* What cannot be done on this kernel, or with opts.raw; "" = nothing. Valid as long as O. */
const char *offcpu_limits(const struct offcpu *o);

/* Add targets, by ids in this process's PID namespace. */
int offcpu_ask_pid(struct offcpu *o, uint32_t pid, struct err *e);
int offcpu_ask_tid(struct offcpu *o, uint32_t tid, struct err *e);
int offcpu_ask_comm(struct offcpu *o, const char *comm, struct err *e); /* name of the group leader */

/* Process PID (a living child) becomes a target at its next exec. */
int offcpu_ask_exec(struct offcpu *o, uint32_t pid, struct err *e);

/*
 * Pass the image of process PID to the sink; if PID is 0, or before Linux 6.1,
 * the images of all processes (with opts.use_cgroup and opts.all: of those in
 * the cgroup). These are the images that need tables before offcpu_start().
 * With opts.raw, PID 0 yields nothing.
 */
int offcpu_images(struct offcpu *o, uint32_t pid, const struct offcpu_sink *sink, struct err *e);

/* The recorder's other processes; 0 = none. */
struct offcpu_own {
	uint32_t worker, broker, store;
};

/* With opts.all, skip them like the recorder itself. */
void offcpu_exclude(struct offcpu *o, const struct offcpu_own *own);

/*
 * After loading: does the kernel refuse what a recording does from then on
 * (maps by descriptor, iterators) to a thread without capabilities? True before
 * Linux 5.19. Tests this in a separate thread; true if none can be started.
 */
bool offcpu_needs_caps(struct offcpu *o);

/* With opts.wakers, before offcpu_start(): the kernel's code that interrupts enter by is [START, END). */
void offcpu_interrupts(struct offcpu *o, uint64_t start, uint64_t end);

/* The kernel's symbols: from now on kernel stacks are walked by its unwind table, which they lead to. */
void offcpu_kernel_symbols(struct offcpu *o, const struct kallsyms *ks);

/* With opts.trigger_ns: how long a wait was that reached it, and of which thread; 0 = there was none. */
uint64_t offcpu_triggered(const struct offcpu *o, uint32_t *tid);

/* An address in the scheduler, where threads that wait go on: see stack_table_schedule(). 0 = not known. */
uint64_t offcpu_schedule_address(const struct offcpu *o);

/*
 * Whose waits had a beginning that the kernel did not report, most recently: "most recently NAME (PID N)", in
 * mode raw "most recently process N"; "" = none.
 */
void offcpu_unseen(const struct offcpu *o, char *ret, size_t size);

/* With opts.sample_stacks or opts.overhead: from now on, one wait in EVERY. */
void offcpu_sample_stacks(struct offcpu *o, uint32_t every);

/* Ignore all waits that process PID begins, until called with 0. */
void offcpu_hold(struct offcpu *o, uint32_t pid);

/* Attach everything. The programs run, but record nothing before offcpu_start(). */
int offcpu_attach(struct offcpu *o, struct err *e);

/* After attaching: processes given by name are targets from now on; in a PID namespace those given by id,
 * too. */
int offcpu_mark(struct offcpu *o, struct err *e);

/* Has a process had the name COMM, one of offcpu_ask_comm(), since offcpu_attach()? */
bool offcpu_comm_seen(const struct offcpu *o, const char *comm);

/*
 * Start recording: mark the targets, find the waits in progress and set the
 * start time (*START_NS, CLOCK_MONOTONIC).
 */
int offcpu_start(struct offcpu *o, uint64_t *start_ns, struct err *e);

/*
 * Walk the stacks of waits in progress that lacked an unwind table when they
 * began. A wait that still lacks one keeps its reason. With opts.raw nothing is
 * walked.
 */
int offcpu_rewalk(struct offcpu *o, struct err *e);

/* For epoll(7): readable when the ring buffer holds much data, an image or a thread's first snapshot. */
int offcpu_fd(const struct offcpu *o);

/* Pass what the ring buffer holds to the sink. */
void offcpu_drain(struct offcpu *o, const struct offcpu_sink *sink);

/*
 * Swap the aggregation maps in steps, to do other work while the kernel waits:
 * begin, poll offcpu_swapped(), end. The end drains the ring buffer and then
 * passes the samples of the old map to the sink.
 *
 * LIVES: it also passes what threads did since the last swap with LIVES, of each up to now or to the
 * beginning of the wait that it is in; without memory or the like, the next swap does. It takes a pass over
 * all threads of the machine, unless a single process is recorded.
 */
void offcpu_begin_swap(struct offcpu *o, bool lives);
bool offcpu_swapped(struct offcpu *o);
int offcpu_end_swap(struct offcpu *o, const struct offcpu_sink *sink, struct err *e);

/* True when the aggregation map is filling up and should be swapped early. */
bool offcpu_crowded(const struct offcpu *o);

/*
 * To forget stacks and wakers that are not used any more: from offcpu_turn() on, each is sent again before
 * the next wait that refers to it, unless the storage of its thread did before. A second later, offcpu_held()
 * passes what these refer to; all other waits that refer to what was sent before are in the map that is
 * swapped next.
 */
void offcpu_turn(struct offcpu *o);
int offcpu_held(struct offcpu *o, const struct offcpu_sink *sink, struct err *e);

/* Pass the key of each wait in progress, which no sample has yet. Nothing changes by it. */
int offcpu_waiting(struct offcpu *o, const struct offcpu_sink *sink, struct err *e);

/*
 * Stop recording, at *STOP_NS, and pass all the rest to the sink, including the
 * waits that are still open (count 1, OFFCPU_F_OPEN). Filters apply to open
 * waits as to any other. EVENTS (NULL is fine) save the time to wait for programs that still run.
 */
int offcpu_freeze(struct offcpu *o, struct procevents *events, const struct offcpu_sink *sink,
	uint64_t *stop_ns, struct err *e);

/* Sums over all CPUs. */
void offcpu_counters(struct offcpu *o, struct offcpu_counters *ret);

/* Detaches and frees; NULL is fine. */
void offcpu_close(struct offcpu *o);

#endif
