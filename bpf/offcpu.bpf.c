/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Off-CPU recording at tp_btf/sched_switch. offcpu-raw.bpf.c compiles the same
 * code for kernels without BTF.
 *
 * A thread that leaves the CPU is still `current` at that tracepoint, so both
 * its stacks can be taken. The key and start time of the wait are kept in the
 * task storage of the thread, which is valid on whatever CPU it returns on.
 * When the thread returns, the wait is added to the aggregation map under its
 * key. A key contains the thread ID, and a thread runs on one CPU at a time: no
 * two CPUs ever update the same element, so plain additions are exact.
 *
 * A stack is identified by a 128-bit hash under a key that is random for each
 * recording. `seen` is only a cache of the stacks already sent: a stack that
 * was evicted is sent again, and user space keeps the first copy.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "offcpu_abi.h"
#include "offcpu_verdict.bpf.h"
#include "task.bpf.h"
#include "offcpu_targets.bpf.h"
#include "offcpu_others.bpf.h"
#include "offcpu_waits.bpf.h"
#include "runtime.bpf.h"
#include "unwind.bpf.h"
#include "offcpu_stacks.bpf.h"
#include "offcpu_orc.bpf.h"
#include "script.bpf.h"
#include "python.bpf.h"
#include "python_states.bpf.h"
#include "php.bpf.h"
#include "perl.bpf.h"
#include "ruby.bpf.h"
#include "script_walk.bpf.h"
#include "python_same.bpf.h"
#include "hotspot.bpf.h"
#include "v8.bpf.h"
#include "offcpu_snapshot.bpf.h"
#include "offcpu_user.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile bool record_preempted;
const volatile bool switch_has_state; /* sched_switch has ARG_STATE: since Linux 5.18 */
const volatile __u32 state_mask;
const volatile __u64 min_ns;
const volatile __u64 max_ns = ~0ULL;
const volatile __u64 trigger_ns = ~0ULL; /* --trigger */
const volatile bool single_waits; /* --events */
const volatile bool sample_stacks; /* --sample-stacks, --overhead */
const volatile bool measure; /* --overhead */
const volatile __u32 waker_steps; /* --wakers: whose waker is recorded too, and so on; 0 = none */
__u64 record_start_ns = 0; /* CLOCK_MONOTONIC */
__u64 record_start_boot = 0; /* the same instant, CLOCK_BOOTTIME */
__u64 inserted = 0; /* elements ever added to the aggregation maps */
__u64 clock_ahead = 0; /* by so much CLOCK_MONOTONIC is ahead of run queues' clocks; 0 = not known yet */
__u64 triggered = 0; /* by this wait: the thread in the upper half, microseconds in the lower */
__u32 stack_every = 0; /* of waits at one place, the stacks of one in so many are taken; user space sets it */
/* The thread whose wait had a beginning that was not reported last. */
struct {
	__u32 tgid;
	char comm[OFFCPU_COMM_LEN];
} unseen = {};
__u64 schedule_address = 0; /* in the scheduler, where a thread that waits will go on; 0 = not known */

struct agg_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(key_size, sizeof(struct offcpu_key));
	__uint(value_size, sizeof(struct offcpu_value));
};

/* One slot: the current aggregation map. User space swaps it at every flush. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, struct agg_map);
} agg SEC(".maps");

/*
 * One slot each: user space sets them to record_switch and record_waking. The
 * kernel lets only programs at the same event tail-call each other.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} recording SEC(".maps"), recording_wakers SEC(".maps");

static __always_inline void announce(struct task_struct *task, struct offcpu_wait *w, struct scratch *s,
	const struct offcpu_key *key, __u64 now)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct offcpu_ev_thread *ev = bpf_ringbuf_reserve(&ring, sizeof(*ev), 0);

	if (!ev) {
		s->count.ring_thread++;
		return;
	}
	ev->type = OFFCPU_EV_THREAD;
	ev->task_flags = task_get(task, flags);
	ev->tgid = key->tgid;
	ev->tid = key->tid;
	ev->ns_tgid = own_id(leader);
	ev->ns_tid = own_id(task);
	ev->start_boot_ns = key->start_boot_ns;
#ifndef OFFCPU_RAW
	ev->time_ns = now;
#else
	ev->time_ns = 0; /* waits before and after a rename have the same key */
#endif
	ev->exec_id = key->exec_id;
	ev->pad = 0;
	BPF_CORE_READ_STR_INTO(&ev->comm, task, comm);
	BPF_CORE_READ_STR_INTO(&ev->leader_comm, leader, comm);
	bpf_ringbuf_submit(ev, BPF_RB_NO_WAKEUP);
	w->announced = key->exec_id + 1;
}

/* Idle waits (NOLOAD) have the D bit too, but ps and this recorder treat them as a separate state. */
static __always_inline bool state_wanted(__u32 state)
{
	return state & (state & TASK_NOLOAD ? state_mask & TASK_NOLOAD : state_mask);
}

/*
 * Set the identity of the waiting thread in KEY. It stays valid until the
 * process execs, so it is read again only then. Return false if the recorder
 * cannot see the task.
 */
static __always_inline bool key_identity(struct offcpu_key *key, struct task_struct *task)
{
	struct task_struct *leader;

	if (key->tid && key->exec_id == image_execs_now(task, key))
		return true;
	leader = BPF_CORE_READ(task, group_leader);
	key->tid = our_id(task);
	key->tgid = our_id(leader);
	key->start_boot_ns = image_start(leader);
	key->exec_id = image_execs(task, key->tgid);
	return key->tid != 0;
}

/* Set all of the key except the stacks. Return false if the recorder cannot see the task. */
static __always_inline bool key_init(
	struct offcpu_key *key, struct task_struct *task, bool runnable, __u32 state)
{
	if (!key_identity(key, task))
		return false;
	key->state = runnable ? 0 : state;
	key->flags = !runnable ? 0 : is_throttled(task) ? OFFCPU_F_THROTTLED : OFFCPU_F_PREEMPTED;
	if (key->flags == OFFCPU_F_PREEMPTED && !record_preempted)
		key->flags |= OFFCPU_F_DROP_PREEMPTED;
	else if (state_mask && !state_wanted(key->state))
		key->flags |= OFFCPU_F_DROP_STATE;
	return true;
}

/* KEY is of the wait in W, which is over or cut here: if its thread lost the CPU, was it throttled then? */
static __always_inline void key_judge(struct offcpu_key *key, const struct offcpu_wait *w)
{
	if (!(key->flags & OFFCPU_F_PREEMPTED) || !w->queue)
		return;
	if (was_throttled(w))
		key->flags ^= OFFCPU_F_PREEMPTED | OFFCPU_F_THROTTLED;
	else if (!record_preempted)
		key->flags |= OFFCPU_F_DROP_PREEMPTED;
}

#ifndef OFFCPU_RAW
#include "offcpu_wakers.bpf.h"
#else
static __always_inline struct offcpu_stack_id waker_of(
	struct task_struct *task, const struct offcpu_key *key, __u64 start, __u64 *came_ns)
{
	return (struct offcpu_stack_id){};
}
#endif

/* Send the wait of the scratch key by itself. False if it has to be summed: stacks need the rest of the ring.
 */
static __always_inline bool send_wait(struct scratch *s, __u64 start, __u64 total, __u64 runnable)
{
	__u64 used = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
	struct offcpu_ev_wait *ev = NULL;

	if (used < 3 * ring_wake_bytes) /* three quarters */
		ev = bpf_ringbuf_reserve(&ring, sizeof(*ev), 0);
	if (!ev) {
		s->count.ring_wait++;
		return false;
	}
	ev->type = OFFCPU_EV_WAIT;
	ev->pad = 0;
	ev->start_ns = start;
	ev->total_ns = total;
	ev->runnable_ns = runnable;
	ev->key = s->key;
	bpf_ringbuf_submit(ev, used > ring_wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	return true;
}

/*
 * Add up the wait of the scratch key, which began at START and has ended. The thread
 * was on a run queue for RUNNABLE ns of it, or OFFCPU_UNKNOWN_NS.
 */
__noinline int account(__u64 start, __u64 now, __u64 runnable)
{
	struct scratch *s = my_scratch();
	struct offcpu_counters *c;
	struct offcpu_key *key;
	__u64 delta = now - start;
	struct offcpu_value *v;
	__u32 zero = 0;
	void *map;

	if (!s)
		return 0;
	c = &s->count;
	key = &s->key;
	if (now < start) {
		c->clock_back++;
		delta = 0;
	}
	c->seen++;
	c->seen_ns += delta;
	if (key->flags & OFFCPU_F_DROP_PREEMPTED) {
		c->preempted++;
		c->preempted_ns += delta;
		return 0;
	}
	if (key->flags & OFFCPU_F_DROP_STATE) {
		c->state++;
		c->state_ns += delta;
		return 0;
	}
	if (delta < min_ns) {
		c->min++;
		c->min_ns += delta;
		return 0;
	}
	if (delta > max_ns) {
		c->max++;
		c->max_ns += delta;
		return 0;
	}
	if (delta >= trigger_ns && !triggered)
		triggered = (__u64)key->tid << 32 | (delta / 1000 < ~0U ? delta / 1000 : ~0U);
	/* counted by another clock; of a wait that began before the recording, since before */
	if (runnable != OFFCPU_UNKNOWN_NS && (runnable > delta || key->flags & OFFCPU_F_PREEMPTED))
		runnable = delta;
	if (single_waits && send_wait(s, start, delta, runnable)) {
		c->recorded++;
		c->recorded_ns += delta;
		return 0;
	}
	map = bpf_map_lookup_elem(&agg, &zero);
	v = map ? bpf_map_lookup_elem(map, key) : NULL;
	if (v) {
		v->total_ns += delta;
		v->count++;
		if (runnable != OFFCPU_UNKNOWN_NS) {
			v->runnable_ns += runnable;
			v->split++;
		}
		if (delta > v->max_ns)
			v->max_ns = delta;
		v->last_ns = start;
	} else {
		struct offcpu_value first = {
			.total_ns = delta, .count = 1, .max_ns = delta, .first_ns = start, .last_ns = start
		};

		if (runnable != OFFCPU_UNKNOWN_NS) {
			first.runnable_ns = runnable;
			first.split = 1;
		}

		if (!map || bpf_map_update_elem(map, key, &first, BPF_NOEXIST)) {
			c->agg_full++;
			c->agg_full_ns += delta;
			return 0;
		}
		__sync_fetch_and_add(&inserted, 1);
	}
	c->recorded++;
	c->recorded_ns += delta;
	return 0;
}

#include "offcpu_call.bpf.h"
#include "offcpu_life.bpf.h"

/* The wait of TASK in W that `start` describes ended at END or earlier; RUNNABLE as in account(). */
static __always_inline void finish(struct task_struct *task, struct scratch *s, struct offcpu_wait *w,
	__u64 start, __u64 end, __u64 runnable)
{
	__u64 came = 0;

	s->key = start == OFFCPU_INITIAL ? w->initial : w->key;
	key_judge(&s->key, w);
	s->key.waker = waker_of(task, &s->key, start, &came);
	if (w->pending && w->late_start == start) {
		s->key.user = w->late;
		s->count.walked_late++;
	}
	if (start < record_start_ns) {
		start = record_start_ns;
		s->key.flags |= OFFCPU_F_INITIAL;
	}
	/*
	 * Since Linux 6.12 a thread stays on its queue for a while when it sleeps. The scheduler counts that
	 * as run_delay if it moves the thread to another CPU meanwhile.
	 */
	if (came > start && came <= end && runnable != OFFCPU_UNKNOWN_NS && runnable > end - came)
		runnable = end - came;
	account(start, end, runnable);
}

/* For how long TASK has been on a run queue since the beginning of the wait of W that `start` describes. */
static __always_inline __u64 runnable_of(
	struct task_struct *task, const struct offcpu_wait *w, __u64 start, bool here)
{
	return runnable_ns(task, start == OFFCPU_INITIAL ? w->initial_run_delay : w->run_delay, here);
}

#include "offcpu_left.bpf.h"

/*
 * A thread leaves the CPU, but its return was not seen: the kernel did not run
 * the program at that switch (a kernel that shields some task from BPF does not
 * run it when that task is switched away from). The scheduler knows for how
 * long the thread has run since, which gives the end of the wait.
 */
#define CLOCKS_NS 1000000 /* by how much the clocks of a run queue and of waits may differ */

static __always_inline void finish_late(
	struct task_struct *task, struct scratch *s, struct offcpu_wait *w, __u64 now)
{
	__u64 start = start_replace(w, OFFCPU_ON_CPU), began, end, ran;

	/* the iterator may have cut it just now */
	if (hot.phase != OFFCPU_RECORDING || start == OFFCPU_UNKNOWN)
		return;
	began = start > record_start_ns ? start : record_start_ns;
	ran = ran_ns(task);
	end = now - ran;
	/* it ran already when the recording began */
	if (ran < now && end < record_start_ns && start < record_start_ns)
		return;
	/* what is not kept current shows when it is more than can be */
	if (ran == OFFCPU_UNKNOWN_NS || ran > now || end + CLOCKS_NS < began) {
		s->count.seen++;
		s->count.end_unknown++;
		return;
	}
	s->count.end_estimated++;
	finish(task, s, w, start, end < began ? began : end, runnable_of(task, w, start, true));
}

#define PLACE_NS 1000000 /* a thread that waits again within this time waits often */

/*
 * Does this wait have the stacks of an earlier one? Only a thread that waits often, at the same place:
 * same system call and state, same user PC and stack pointer. Which waits get stacks of their own is random,
 * one in stack_every on average, because threads may alternate between two ways to the same place.
 */
static __always_inline bool keeps_stacks(
	struct task_struct *task, struct scratch *s, struct offcpu_wait *w, struct offcpu_key *key, __u64 now)
{
	__u32 every = stack_every, call;
	const struct pt_regs *regs;
	__u64 address, pc, sp;
	bool again;

	if (every <= 1 || no_user_reason(task))
		return false;
	regs = user_regs(task, s, &address);
	pc = PT_REGS_IP(regs);
	sp = PT_REGS_SP(regs);
	call = arch_syscall(regs);
	again = pc == w->place_pc && sp == w->place_sp && call == w->place_call &&
		key->state == w->place_state && now - w->place_ns < PLACE_NS;
	w->place_ns = now;
	if (w->keep && again && !w->pending && !(w->unsent & 1) && w->announced == key->exec_id + 1) {
		w->keep--;
		s->count.stacks_kept++;
		return true;
	}
	s->count.stacks_taken++;
	w->keep = again ? bpf_get_prandom_u32() % (2 * every - 1) : 0; /* every - 1 on average */
	w->place_pc = pc;
	w->place_sp = sp;
	w->place_call = call;
	w->place_state = key->state;
	return false;
}

static __always_inline void leave(void *ctx, struct task_struct *task, bool preempt, __u32 state, __u64 now)
{
	/* a thread's last switch starts no wait, and the kernel no longer allocates storage for it */
	bool last = !preempt && (state & (TASK_DEAD | EXIT_DEAD | EXIT_ZOMBIE));
	struct scratch *s = my_scratch();
	struct offcpu_wait *w;
	struct offcpu_key *key;

	if (!s)
		return;
	w = wait_get(task, !last);
	if (!w) {
		if (!last && hot.phase == OFFCPU_RECORDING) {
			s->count.seen++;
			s->count.storage++;
		}
		return;
	}
	if (w->start == OFFCPU_UNKNOWN)
		compare_clocks(now);
	else if (w->start != OFFCPU_ON_CPU && !(use_cgroup && end_cut(task, w, &s->count, OFFCPU_ON_CPU)))
		finish_late(task, s, w, now);
	life_born(task, w, now);
	if (last || (preempt && has_ended(task)))
		life_end(now);
	if (last) {
		wait_drop(task, w);
		return;
	}
	key = &w->key;
	if (!key_init(key, task, preempt || state == TASK_RUNNING, state)) {
		s->count.invisible += hot.phase == OFFCPU_RECORDING &&
				      (record_preempted || !(preempt || state == TASK_RUNNING));
		w->start = OFFCPU_UNKNOWN;
		return;
	}
	if (key->flags & OFFCPU_F_PREEMPTED && !state_mask && may_be_throttled(task, w))
		key->flags &= ~OFFCPU_F_DROP_PREEMPTED;
	key->name = w->names;
	if (state && !preempt)
		key->flags |= call_flags(task);
	if (key->tgid == held) {
		w->start = OFFCPU_UNKNOWN;
		return;
	}
	w->unsent >>= !(key->flags & OFFCPU_F_DROP);
	if (!(key->flags & OFFCPU_F_DROP) && !(sample_stacks && keeps_stacks(task, s, w, key, now))) {
		if (w->announced != key->exec_id + 1)
			announce(task, w, s, key, now);
		key->kernel = kernel_stacks ? kernel_stack(ctx, task, s, w, &key->kernel)
					    : no_stack(REASON_NOT_RECORDED);
		key->user = user_stack(ctx, task, s, w, key, now);
	}
	w->run_delay = run_delay(task);
	w->start = now;
}

/* Count a wait of a target that the caller may not trace. Measuring its duration would require storage. */
static __always_inline void count_not_owned(struct task_struct *task, struct scratch *s)
{
	/* a thread that has never run has not waited */
	if (!task_get(task, se.sum_exec_runtime))
		return;
	s->count.seen++;
	s->count.owner++;
}

static __always_inline void leave_out(struct task_struct *prev)
{
	struct offcpu_wait *w = wait_get(prev, false);

	if (w)
		w->start = OFFCPU_UNKNOWN;
}

static __always_inline void return_not_owned(struct task_struct *next)
{
	struct offcpu_wait *w = wait_get(next, false);
	struct scratch *s = my_scratch();

	if (w)
		w->start = OFFCPU_ON_CPU;
	if (s && hot.phase == OFFCPU_RECORDING)
		count_not_owned(next, s);
}

/*
 * Would the kernel log a warning if it took the stack of TASK? So it does (6.1) for a thread that could run,
 * if it has to look up there what a kretprobe replaced.
 */
static __always_inline bool stack_warns(struct task_struct *task)
{
#ifndef OFFCPU_RAW
	struct task_struct___rethooks *hooked = (void *)task;

	return bpf_core_field_exists(hooked->rethooks) && hooked->rethooks.first && !state_now(task);
#else
	return false;
#endif
}

/* The kernel stack of TASK, which is not running. */
static __always_inline struct offcpu_stack_id kernel_stack_of(struct task_struct *task, struct scratch *s,
	struct offcpu_wait *w, const struct offcpu_stack_id *last)
{
	if (!kernel_stacks)
		return no_stack(REASON_NOT_RECORDED);
#ifdef OFFCPU_RAW
	return no_stack(REASON_NOT_SEEN);
#else
	if (stack_warns(task))
		return no_stack(REASON_NOT_SEEN);
	return helper_stack(
		s, w, last, bpf_get_task_stack(task, s->ev.frames, stack_bytes(KIND_KERNEL), 0), KIND_KERNEL);
#endif
}

/*
 * A thread that existed when the recording began returns, but its wait is not
 * known: its switch away was before, and the iterator could not tell that it
 * was not on a CPU. It is not on one yet: its kernel stack does not change and
 * can be taken, its user stack cannot.
 */
static __always_inline void enter_unseen(struct task_struct *task, __u64 now)
{
	struct scratch *s = my_scratch();
	struct offcpu_wait *w;
	struct offcpu_key *key;

#ifndef OFFCPU_RAW
	/* a wait without storage is counted where it begins, or by the iterator */
	if (bpf_core_field_exists(task->on_cpu))
		return;
#endif
	/* with -c, --follow, exec or a cgroup move, the process may have become a target during the wait */
	if (!s || use_comms || follow || owner_only || use_cgroup ||
		task_get(task, start_boottime) > record_start_boot)
		return;
	key = &s->key;
	*key = (struct offcpu_key){};
	if (!key_init(key, task, false, state_now(task)))
		return;
	/* once per thread: from now on it is known to run until it is seen leaving */
	w = wait_get(task, true);
	if (!w) {
		s->count.seen++;
		s->count.storage++;
		return;
	}
	w->start = OFFCPU_ON_CPU;
	key->flags |= OFFCPU_F_INITIAL;
	key->user = no_stack(REASON_NOT_SEEN);
	key->kernel = kernel_stack_of(task, s, w, &key->kernel);
	account(record_start_ns, now, OFFCPU_UNKNOWN_NS);
}

/*
 * TASK returns, but is not known to have left. Has it never been seen leaving, the kernel hides its switches
 * away from BPF programs, as hardened kernels do for some processes. (In mode raw W may be of a thread that
 * was not waiting.)
 */
static __always_inline void begin_unseen(struct task_struct *task, struct scratch *s, struct offcpu_wait *w)
{
#ifdef OFFCPU_RAW
	if (!w->key.tid)
		return;
#endif
	s->count.seen++;
	if (w->key.tid)
		s->count.begin_unseen++;
	else
		s->count.hidden++;
#ifdef OFFCPU_RAW
	unseen.tgid = w->key.tgid; /* a classic tracepoint has no TASK */
#else
	unseen.tgid = our_id(BPF_CORE_READ(task, group_leader));
	BPF_CORE_READ_STR_INTO(&unseen.comm, task, comm);
#endif
}

static __always_inline void enter_wait(struct task_struct *task, struct offcpu_wait *w, bool armed, __u64 now)
{
	struct scratch *s = my_scratch();
	__u64 start;

	if (!s || (use_cgroup && end_cut(task, w, &s->count, OFFCPU_ON_CPU)))
		return;
	start = start_replace(w, OFFCPU_ON_CPU);
	if (armed || start == OFFCPU_UNKNOWN)
		return;
	if (start == OFFCPU_ON_CPU && use_cgroup && left_lately(task))
		return; /* it has left the CPU outside */
	if (start == OFFCPU_ON_CPU)
		begin_unseen(task, s, w);
	else
		finish(task, s, w, start, now, runnable_of(task, w, start, true));
	if (start == OFFCPU_INITIAL)
		compare_clocks(now);
}

/* --overhead: the program has run since then. */
static __always_inline void count_spent(__u64 since)
{
	struct scratch *s = my_scratch();

	if (s)
		s->count.spent_ns += bpf_ktime_get_ns() - since;
}

static __always_inline void enter(struct task_struct *task, __u64 now)
{
	bool armed = hot.phase == OFFCPU_ARMED;
	struct offcpu_wait *w;
	struct scratch *s;

	/* while armed, create the entry: it shows the `waiting` iterator that this thread runs */
	w = wait_get(task, armed);
	if (!w) {
		if (!armed)
			enter_unseen(task, now);
		if (owner_only && !armed && (s = my_scratch()))
			count_not_owned(task, s);
		return;
	}
	if (owner_only && !armed && w->start == OFFCPU_UNKNOWN && (s = my_scratch()))
		count_not_owned(task, s); /* it did not belong to the caller when it left */
	enter_wait(task, w, armed, now);
}

/* Arguments of the tracepoint: bool preempt, struct task_struct *prev, *next, unsigned int prev_state */
enum { ARG_PREEMPT, ARG_PREV, ARG_NEXT, ARG_STATE };

/* The switch of a target. User space does not attach this program: sched_switch calls it. */
EVENT("sched_switch")
int record_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[ARG_PREV], *next = (void *)ctx[ARG_NEXT];
	__u64 now = bpf_ktime_get_ns();

	if (wanted(next)) {
		if (not_owned(next))
			return_not_owned(next);
		else
			enter(next, now);
	}
	if (wanted(prev)) {
		if (not_owned(prev))
			leave_out(prev);
		else
			leave(ctx, prev, ctx[ARG_PREEMPT],
				switch_has_state ? ctx[ARG_STATE] : state_now(prev), now);
	}
	if (measure)
		count_spent(now);
	return 0;
}

/*
 * Runs at every switch of every task. It is a separate program, so that
 * switches of other tasks do not pay for the registers and the stack of the
 * recording. It makes a tail call, because a call would add a frame to every
 * kernel stack, and the unwinder takes about 300 ns per frame.
 */
EVENT("sched_switch")
int sched_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[ARG_PREV], *next = (void *)ctx[ARG_NEXT];

	/* before anything else is read: most switches end here */
	if (both_others(prev, next))
		return 0;
	if (hot.phase != OFFCPU_RECORDING && hot.phase != OFFCPU_ARMED)
		return 0;
	if (either_wanted(prev, next))
		bpf_tail_call(ctx, &recording, 0);
	return 0;
}

#ifndef OFFCPU_RAW
#include "offcpu_cpu.bpf.h"
#include "offcpu_iter.bpf.h"
#endif
