/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that leave the recorded cgroup. Part of offcpu.bpf.c.
 *
 * A wait is recorded while its thread is in the cgroup: one that is open when its thread is moved out ends
 * there, as those do that are open at the end of the recording. Nothing is looked up for that at the switches
 * of threads outside, so what is kept is when processes and threads left. By that time user space cuts such
 * waits whenever it reads the sums, and so do the programs that see such a thread before: it comes back, or
 * it ends.
 */
#ifndef STACKTOOLS_OFFCPU_LEFT_BPF_H
#define STACKTOOLS_OFFCPU_LEFT_BPF_H

#ifndef OFFCPU_RAW

#define LEFT_PROCESS (1ULL << 32) /* in a key: all threads of the process; else of one thread, by its ID */

struct offcpu_left {
	__u64 first, last; /* when it left since user space has last looked, CLOCK_MONOTONIC */
};

/* Global IDs. An element is of use until user space has looked; the ID may be another's by then. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct offcpu_left);
} left SEC(".maps");

/* TASK, or with THREADGROUP its whole process, has moved to another cgroup, in any hierarchy. */
SEC("kern_tp/cgroup_attach_task")
int BPF_PROG(on_attach, struct cgroup *to, const char *path, struct task_struct *task, bool threadgroup)
{
	__u64 key = threadgroup ? LEFT_PROCESS | (__u32)task->tgid : (__u32)task->pid;
	struct offcpu_left *before, now;

	learn_cgroup(cgroup_of(task));
	if (in_cgroup(task)) {
		if (by_table)
			report_image(task);
		return 0;
	}
	now.first = now.last = bpf_ktime_get_ns();
	before = bpf_map_lookup_elem(&left, &key);
	if (before && before->first > cgroup_at.looked_ns)
		before->last = now.last;
	else
		bpf_map_update_elem(&left, &key, &now, BPF_ANY);
	__sync_fetch_and_add(&cgroup_at.left, 1);
	return 0;
}

/* When a wait of TASK that START describes was cut by that; 0 = it was not. */
static __always_inline __u64 cut_by(__u64 key, __u64 start)
{
	struct offcpu_left *by = bpf_map_lookup_elem(&left, &key);

	return !by ? 0 : start < by->first ? by->first : start < by->last ? by->last : 0;
}

static __always_inline __u64 cut_at(struct task_struct *task, __u64 start)
{
	__u64 at, alone;

	if (!use_cgroup || !cgroup_at.left)
		return 0;
	at = cut_by(LEFT_PROCESS | (__u32)task->tgid, start);
	alone = cut_by((__u32)task->pid, start);
	return at && (!alone || at < alone) ? at : alone;
}

/* Has TASK left, and user space has not looked since? */
static __always_inline bool left_lately(struct task_struct *task)
{
	return cut_at(task, cgroup_at.looked_ns);
}

/* The wait of TASK in W that START describes, as one that is open. */
static __always_inline void open_wait(
	struct offcpu_ev_open *ev, struct task_struct *task, struct offcpu_wait *w, __u64 start)
{
	ev->type = OFFCPU_EV_OPEN;
	ev->pad = 0;
	ev->start = start;
	ev->end = cut_at(task, start);
	ev->key = start == OFFCPU_INITIAL ? w->initial : w->key;
	key_judge(&ev->key, w);
	if (w->pending && w->late_start == start)
		ev->key.user = w->late;
	/* it may have been on a run queue outside since */
	ev->runnable_ns = ev->end ? OFFCPU_UNKNOWN_NS : runnable_of(task, w, start, false);
	if (start < record_start_ns) {
		ev->start = record_start_ns;
		ev->key.flags |= OFFCPU_F_INITIAL;
	}
}

/* Is the wait of TASK in W one that was cut? Then user space gets it, and START becomes NOW. */
static __noinline bool end_cut(
	struct task_struct *task, struct offcpu_wait *w, struct offcpu_counters *c, __u64 now)
{
	struct offcpu_ev_open *ev;
	__u64 start = w->start;

	if (hot.phase != OFFCPU_RECORDING || start == OFFCPU_UNKNOWN || start == OFFCPU_ON_CPU ||
		!cut_at(task, start))
		return false;
	ev = bpf_ringbuf_reserve(&ring, sizeof(*ev), 0);
	if (ev)
		open_wait(ev, task, w, start);
	if (__sync_val_compare_and_swap(&w->start, start, now) != start) {
		/* another one has; what was read may be of two waits */
		if (ev)
			bpf_ringbuf_discard(ev, BPF_RB_NO_WAKEUP);
		return false;
	}
	if (ev) {
		bpf_ringbuf_submit(ev, BPF_RB_NO_WAKEUP);
	} else {
		c->seen++;
		c->end_unknown++;
	}
	return true;
}

/* Outside, the last switch of a thread is not looked at, nor does an iterator find it then. */
SEC("kern_tp/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct offcpu_wait *w;
	struct scratch *s;

	if (!cgroup_at.left || in_cgroup(task))
		return 0;
	w = wait_get(task, false);
	s = my_scratch();
	if (w && s)
		end_cut(task, w, &s->count, OFFCPU_UNKNOWN);
	return 0;
}

/* For the iterator: TASK may have left. */
static __always_inline void look_for_cut(struct task_struct *task, struct scratch *s)
{
	struct offcpu_wait *w = wait_get(task, false);
	bool runs = !bpf_core_field_exists(task->on_cpu) || task->on_cpu;

	if (!w || !left_lately(task))
		return;
	/* it ran inside, and its next switch was not looked at, or will not be */
	if (!runs || !in_cgroup(task))
		__sync_val_compare_and_swap(&w->start, OFFCPU_ON_CPU, OFFCPU_UNKNOWN);
	end_cut(task, w, &s->count, OFFCPU_UNKNOWN);
}

#else

static __always_inline bool end_cut(
	struct task_struct *task, struct offcpu_wait *w, struct offcpu_counters *c, __u64 now)
{
	return false;
}

static __always_inline bool left_lately(struct task_struct *task)
{
	return false;
}

#endif

#endif
