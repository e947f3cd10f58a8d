/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long a thread ran within the recording, as the scheduler counts it: read where its life in the
 * recording begins and where it ends, so that a switch costs nothing. Part of offcpu.bpf.c.
 *
 * What a thread has run is exact while it is off the CPU, and where it leaves it. Of one that runs, the
 * scheduler knows it up to its last tick, whose time is by the clock of the run queue; the rest follows from
 * by how much that clock differs from ours.
 */
#ifndef STACKTOOLS_OFFCPU_LIFE_BPF_H
#define STACKTOOLS_OFFCPU_LIFE_BPF_H

#ifndef OFFCPU_RAW

static __always_inline bool lives_known(struct task_struct *task)
{
	return queue_known(task) && bpf_core_field_exists(task->on_cpu) &&
	       bpf_core_field_exists(task->se.exec_start) &&
	       bpf_core_field_exists(task->se.cfs_rq->rq->clock_task);
}

/* A thread leaves this CPU or returns to it, so that the clock of its run queue was just read. */
static __always_inline void compare_clocks(__u64 now)
{
	__u64 clock = this_queue_clock();

	if (clock)
		clock_ahead = now - clock;
}

/* What TASK had run, *AT this time of its run queue's clock, since when it runs on; 0 = it does not run. */
static __always_inline __u64 ran_until(struct task_struct *task, __u64 *at)
{
	struct rq *rq = BPF_CORE_READ(task, se.cfs_rq, rq);
	__u64 since, ran;

	if (!task->on_cpu) {
		*at = 0;
		return task->se.sum_exec_runtime;
	}
	since = task->se.exec_start;
	barrier();
	ran = task->se.sum_exec_runtime;
	barrier();
	if (task->se.exec_start != since) { /* a tick came in between */
		since = task->se.exec_start;
		ran = task->se.sum_exec_runtime;
	}
	/* this one is by the clock without interrupts and what the hypervisor took */
	*at = since + (BPF_CORE_READ(rq, clock) - BPF_CORE_READ(rq, clock_task));
	return ran;
}

/* The life of TASK in the recording begins at FROM, or OFFCPU_LIFE_FOUND. */
static __always_inline void life_begin(struct task_struct *task, struct offcpu_wait *w, __u64 from)
{
	__u64 queued;

	if (!lives_known(task))
		return;
	w->life_ran = ran_until(task, &w->life_ran_at);
	queued = runnable_ns(task, 0, false);
	w->life_queued = queued == OFFCPU_UNKNOWN_NS ? 0 : queued;
	w->life_from = from;
}

/*
 * TASK, whose wait is W, leaves a CPU. If that is for the first time, its life began when it was put on a run
 * queue: when it was made its parent may have lost the CPU before that.
 */
static __always_inline void life_born(struct task_struct *task, struct offcpu_wait *w, __u64 now)
{
	/* while armed, the recording's beginning is not known yet */
	if (w->key.tid || w->life_from || hot.phase != OFFCPU_RECORDING || !lives_known(task) ||
		!bpf_core_field_exists(task->sched_info) || task->start_boottime <= record_start_boot ||
		task->sched_info.pcount != 1)
		return;
	w->life_from = now - task->se.sum_exec_runtime - run_delay(task);
}

/* The life of TASK in the recording up to NOW. False if it is not known, or was reported already. */
static __always_inline bool life_until(
	struct task_struct *task, const struct offcpu_wait *w, __u64 now, struct offcpu_life *life)
{
	__u64 from = w->life_from, ran, ran_at, before = w->life_ran, before_at = w->life_ran_at, boot;

	if (!lives_known(task) || from == OFFCPU_LIFE_REPORTED)
		return false;
	boot = task->start_boottime;
	if (!from) { /* it was born during the recording, or it has become a target */
		if (boot <= record_start_boot)
			return false;
		from = record_start_ns + boot - record_start_boot;
		before = before_at = 0;
	}
	if (from < record_start_ns)
		from = record_start_ns;
	ran = ran_until(task, &ran_at);
	/* of one that runs at both ends the difference cancels out */
	if (now < from || (!clock_ahead && !ran_at != !before_at))
		return false;
	if (ran_at)
		ran += now - clock_ahead - ran_at;
	if (before_at)
		before += from - clock_ahead - before_at;
	life->from_ns = from;
	life->to_ns = now;
	life->ran_ns = (__s64)(ran - before) > 0 ? ran - before : 0;
	life->queued_ns = runnable_ns(task, w->life_from ? w->life_queued : 0, false);
	life->runs = ran_at != 0;
	return true;
}

/*
 * The life of TASK up to NOW or, if it waits, to the beginning of that, so that each wait is whole in one of
 * the parts of its life; W then has what the next part begins with. False if nothing is new, or if TASK is
 * just being switched.
 */
static __always_inline bool life_so_far(
	struct task_struct *task, struct offcpu_wait *w, __u64 now, struct offcpu_life *life)
{
	__u64 start = w->start;
	bool blocked = start > OFFCPU_INITIAL;

	if (!lives_known(task) || !task->on_cpu != blocked ||
		!life_until(task, w, blocked ? start : now, life))
		return false;
	if (!blocked) {
		life_begin(task, w, now);
		return true;
	}
	if (life->queued_ns != OFFCPU_UNKNOWN_NS)
		life->queued_ns = w->run_delay - (w->life_from ? w->life_queued : 0);
	if (life->from_ns == start || task->on_cpu || w->start != start)
		return false;
	w->life_ran = task->se.sum_exec_runtime;
	w->life_ran_at = 0;
	w->life_queued = w->run_delay;
	w->life_from = start;
	return true;
}

static __always_inline void send_life(const struct offcpu_ev_life *life)
{
	struct scratch *s;

	if (bpf_ringbuf_output(&ring, (void *)life, sizeof(*life), BPF_RB_NO_WAKEUP)) {
		s = my_scratch();
		if (s)
			s->count.ring_life++;
	}
}

/* Complete EV, whose life is known, with who TASK is. False if the recorder cannot see it. */
static __always_inline bool life_identity(struct offcpu_ev_life *ev, struct task_struct *task)
{
	ev->type = OFFCPU_EV_LIFE;
	ev->ns_tid = own_id(task);
	BPF_CORE_READ_STR_INTO(&ev->comm, task, comm);
	return key_identity(&ev->key, task);
}

/* TASK is behind its exit, where no iterator finds it, but may still lose the CPU before its last switch. */
static __always_inline bool has_ended(struct task_struct *task)
{
	return task->exit_state;
}

/*
 * The current thread leaves its CPU after its end. By itself, as the programs' frames together have 512
 * bytes, and the event would be in that of the program at each switch.
 */
__noinline int life_end(__u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct offcpu_wait *w = wait_get(task, false);
	struct offcpu_ev_life ev = {};

	if (!w || hot.phase != OFFCPU_RECORDING)
		return 0;
	compare_clocks(now);
	if (life_until(task, w, now, &ev.life) && life_identity(&ev, task))
		send_life(&ev);
	w->life_from = OFFCPU_LIFE_REPORTED;
	return 0;
}

/* TASK, which runs, has replaced its image: the old one's life ends, and another begins. */
static __always_inline void life_of_image(struct task_struct *task)
{
	struct offcpu_ev_life ev = { .type = OFFCPU_EV_LIFE };
	struct offcpu_wait *w;
	__u64 now;

	if ((hot.phase != OFFCPU_RECORDING && hot.phase != OFFCPU_ARMED) || !wanted(task) || not_owned(task))
		return;
	w = wait_get(task, true);
	if (!w)
		return;
	now = bpf_ktime_get_ns();
	/* without a key no wait of the old image was seen: it may not have been a target */
	if (hot.phase == OFFCPU_RECORDING && w->key.tid && life_until(task, w, now, &ev.life)) {
		ev.ns_tid = own_id(task);
		ev.key = w->key;
		ev.key.exec_id = image_execs(task, 0) - 1; /* it may have waited since */
		send_life(&ev);
	}
	life_begin(task, w, now);
}

#else

/* Not known: without BTF the recorder does not know where these members of a run queue are. */
static __always_inline void compare_clocks(__u64 now)
{
}

static __always_inline void life_born(struct task_struct *task, struct offcpu_wait *w, __u64 now)
{
}

static __always_inline bool has_ended(struct task_struct *task)
{
	return false;
}

static __always_inline int life_end(__u64 now)
{
	return 0;
}

static __always_inline void life_of_image(struct task_struct *task)
{
}

#endif

#endif
