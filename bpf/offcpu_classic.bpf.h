/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Classic tracepoints: for a thread other than the current one they give only
 * IDs of the initial PID namespace. So the return of a thread is recorded only
 * if its wait is known; the current thread is handled as usual. Part of
 * offcpu-raw.bpf.c.
 *
 * User space reads the field offsets from tracefs, events/EVENT/format.
 */
#ifndef STACKTOOLS_OFFCPU_CLASSIC_BPF_H
#define STACKTOOLS_OFFCPU_CLASSIC_BPF_H

const volatile struct offcpu_fields fields SEC(".rodata.raw") = {};

/* prev_state as sched_switch prints it: include/trace/events/sched.h */
#define CLASSIC_PREEMPTED 0x100
#define CLASSIC_IDLE 0x80
#define CLONE_THREAD 0x10000

#define field(ctx, at, to) bpf_probe_read_kernel(to, sizeof(*(to)), (const char *)(ctx) + (at))

static __always_inline bool classic_state(void *ctx, __u32 *state)
{
	__u64 shown = 0;

	field(ctx, fields.prev_state, &shown);
	*state = shown & CLASSIC_IDLE ? TASK_NOLOAD | TASK_UNINTERRUPTIBLE : shown & 0x7f;
	return shown & CLASSIC_PREEMPTED;
}

static __always_inline void classic_enter(__u32 id, __u64 now)
{
	bool armed = hot.phase == OFFCPU_ARMED;
	struct offcpu_wait *w = armed ? wait_make_id(id) : wait_of_id(id);

	if (w)
		enter_wait(NULL, w, armed, now);
}

SEC("tp/sched/sched_switch")
int classic_record(void *ctx)
{
	struct task_struct *prev = (void *)bpf_get_current_task();
	__u64 now = bpf_ktime_get_ns();
	__u32 next = 0, state;
	bool preempt;

	field(ctx, fields.next_pid, &next);
	if (next)
		classic_enter(next, now);
	if (wanted(prev)) {
		preempt = classic_state(ctx, &state);
		leave(ctx, prev, preempt, state, now);
	}
	if (measure)
		count_spent(now);
	return 0;
}

/* On this CPU a thread is being renamed to a -c name; the next switch shows which thread it was. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} renaming SEC(".maps");

/*
 * A thread is renamed under a lock that prevents a switch. So at the next
 * switch the process of the current thread has the new name, if its main thread
 * was renamed.
 */
static __always_inline void take_rename(struct task_struct *task)
{
	__u32 zero = 0, *renamed = bpf_map_lookup_elem(&renaming, &zero);

	if (!renamed || !*renamed)
		return;
	*renamed = 0;
	if (comm_matches(BPF_CORE_READ(task, group_leader)))
		bit_set(&tgids, set_tgid(task));
}

/* wanted() of the thread that runs. If one process is recorded, its ID is known without reading the task. */
static __always_inline bool current_wanted(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return single ? current_set_tgid(task) == hot.single_tgid : wanted(task);
}

SEC("tp/sched/sched_switch")
int classic_switch(void *ctx)
{
	__u32 next = 0;

	if (use_comms && !fields.rename_pid)
		take_rename((void *)bpf_get_current_task());
	if (hot.phase != OFFCPU_RECORDING && hot.phase != OFFCPU_ARMED)
		return 0;
	field(ctx, fields.next_pid, &next);
	/* an idle task has no wait */
	if (hot.phase == OFFCPU_ARMED || (next && wait_of_id(next)) || current_wanted())
		bpf_tail_call(ctx, &recording, 0);
	return 0;
}

/* The current thread creates another one. */
SEC("tp/task/task_newtask")
int classic_fork(void *ctx)
{
	struct task_struct *parent = (void *)bpf_get_current_task();
	char name[OFFCPU_COMM_LEN] = {};
	__u64 flags = 0;
	__u32 child = 0;

	field(ctx, fields.newtask_pid, &child);
	field(ctx, fields.newtask_flags, &flags);
	id_reused(child, flags & CLONE_THREAD ? 0 : child);
	if (all_tasks || single)
		return 0;
	if (use_tids)
		bit_clear(&tids, child);
	if (flags & CLONE_THREAD)
		return 0;
	if (use_comms)
		field(ctx, fields.newtask_comm, &name);
	if ((follow && is_followed(parent)) || (use_comms && name_requested(name)))
		bit_set(&tgids, child);
	else
		bit_clear(&tgids, child);
	return 0;
}

SEC("tp/sched/sched_process_exec")
int classic_exec(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (!all_tasks && !single)
		target_exec(task);
	if (by_table)
		report_image(task);
	return 0;
}

/*
 * Only a process itself renames its threads. Some kernels do not report which
 * thread it is (seen on 6.16 to 6.18).
 */
SEC("tp/task/task_rename")
int classic_rename(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	char name[OFFCPU_COMM_LEN] = {};
	__u32 id = 0, one = 1;

	if (rename_is_exec(task))
		image_replaced(task);
	if (!use_comms)
		return 0;
	field(ctx, fields.rename_newcomm, &name);
	if (!fields.rename_pid) {
		if (name_requested(name))
			bpf_map_update_elem(&renaming, &id, &one, BPF_ANY);
		return 0;
	}
	field(ctx, fields.rename_pid, &id);
	if (id == set_tgid(task) && name_requested(name))
		bit_set(&tgids, id);
	return 0;
}

#endif
