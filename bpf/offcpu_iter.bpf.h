/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The iterators over tasks that user space runs: the waits in progress at the
 * start, the images of the targets, and the waits still open at the end. Part
 * of offcpu.bpf.c.
 */
#ifndef STACKTOOLS_OFFCPU_ITER_BPF_H
#define STACKTOOLS_OFFCPU_ITER_BPF_H

/* The key, without the user stack, of a wait that began before the recording. */
static __always_inline bool take_initial(struct task_struct *task, struct scratch *s, struct offcpu_wait *w)
{
	struct offcpu_key *key = &w->initial;
	__u32 state = state_now(task);

	if (state & (TASK_DEAD | EXIT_DEAD | EXIT_ZOMBIE))
		return false;
	/* one that is runnable may have been preempted, or woken from a wait: nothing says which */
	if (!key_init(key, task, false, state))
		return false;
	if (state == TASK_RUNNING && is_throttled(task))
		key->flags |= OFFCPU_F_THROTTLED;
	if (state != TASK_RUNNING)
		key->flags |= call_flags(task);
	w->initial_run_delay = run_delay(task);
	if (key->flags & OFFCPU_F_DROP)
		return true;
	announce(task, w, s, key, bpf_ktime_get_ns());
	key->kernel = kernel_stack_of(task, s, w, &key->kernel);
	return true;
}

/*
 * The user stack of a wait that began before the recording, or before its
 * unwind table was available: the thread has not moved since. If it moves in
 * the meantime, `start` shows that.
 */
static __always_inline void walk_blocked(
	struct task_struct *task, struct scratch *s, struct offcpu_wait *w, bool with_user)
{
	bool late = w->pending;
	__u64 start = w->start;
	struct offcpu_key *key = late && start != OFFCPU_INITIAL ? &w->key : &w->initial;
	struct offcpu_stack_id id;

	if (late ? !with_user : !take_initial(task, s, w))
		return;
	if (!with_user) {
		__u32 reason = no_user_reason(task);

		key->user = no_stack(reason ? reason : REASON_NOT_SEEN);
	} else if (late || !(key->flags & OFFCPU_F_DROP)) {
		id = other_user_stack(task, s, w, key);
		if (late) {
			if (lacks_tables(s) || w->start != start)
				return;
			w->late = id;
			/* an exchange, so that `late` is visible before late_start */
			__sync_lock_test_and_set(&w->late_start, start);
			return;
		}
		key->user = id;
		w->pending = lacks_tables(s);
	}
	/*
	 * Is this still the same wait? A thread that has run since changed
	 * UNKNOWN in enter() or leave(); then the exchange fails.
	 */
	__sync_val_compare_and_swap(&w->start, OFFCPU_UNKNOWN, OFFCPU_INITIAL);
}

/*
 * Where TASK, which does not run, will go on: in the scheduler's function that switched to another one.
 * Kernel stacks that are taken at the switch have the tracer's own frames before that place, and this tells
 * them apart even if no symbols may be read. (bpf_get_task_stack() leaves the scheduler's frames out.)
 */
static __always_inline void note_scheduler(struct task_struct *task)
{
#ifdef bpf_target_x86
	/* the return address behind six registers: struct inactive_task_frame in
	 * arch/x86/include/asm/switch_to.h */
	const __u32 offset = 6 * sizeof(__u64);
	__u64 address;

	if (schedule_address || !bpf_core_field_exists(task->on_cpu) ||
		!bpf_core_field_exists(task->thread.sp) || task->on_cpu || !task->se.sum_exec_runtime)
		return;
	if (!bpf_probe_read_kernel(&address, sizeof(address), (void *)(task->thread.sp + offset)))
		schedule_address = address;
#endif
}

static __always_inline int visit_task(struct bpf_iter__task *ctx, bool with_user)
{
	struct task_struct *task = ctx->task;
	bool armed = hot.phase == OFFCPU_ARMED;
	struct offcpu_wait *w;
	struct scratch *s;
	__u32 zero = 0;

	if (task)
		note_scheduler(task);
	/*
	 * without on_cpu the stacks of running threads would be taken:
	 * enter_unseen() takes the wait instead
	 */
	if (!task || !wanted(task) || !bpf_core_field_exists(task->on_cpu) || not_owned(task))
		return 0;
	s = bpf_map_lookup_elem(&iter_scratch, &zero);
	w = wait_get(task, armed || hot.phase == OFFCPU_IDLE);
	if (!s)
		return 0;
	if (!w) {
		if (armed) {
			s->count.seen++;
			s->count.storage++;
		}
		return 0;
	}
	if (armed)
		life_begin(task, w, OFFCPU_LIFE_FOUND);
	if (task->on_cpu || hot.phase == OFFCPU_IDLE)
		return 0;
	/* INITIAL, or a start time and not walked late already */
	if (w->pending ? w->start >= OFFCPU_INITIAL && w->late_start != w->start
		       : armed && w->start == OFFCPU_UNKNOWN)
		walk_blocked(task, s, w, with_user);
	return 0;
}

/*
 * The threads that are already waiting. Run while idle, to give every thread its storage: the scheduler's
 * programs get none where the kernel is inside of it, and little at once. Then while armed, and again when
 * unwind tables have come that waits in progress needed.
 */
SEC("kern_iter.s/task")
int waiting(struct bpf_iter__task *ctx)
{
	return visit_task(ctx, true);
}

/* Replaces `waiting` if an iterator cannot read another task's memory: before Linux 5.18. */
SEC("kern_iter/task")
int waiting_no_user(struct bpf_iter__task *ctx)
{
	return visit_task(ctx, false);
}

/* Report the image of each process that the iterator visits, for its unwind tables. */
SEC("kern_iter/task")
int find_images(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct offcpu_ev_image ev = { .type = OFFCPU_EV_IMAGE };
	struct offcpu_key key = {};

	if (!task || task->pid != task->tgid || task->flags & PF_KTHREAD)
		return 0;
	if (use_cgroup && all_tasks && !in_cgroup(task))
		return 0;
	if (!key_identity(&key, task))
		return 0;
	ev.tgid = key.tgid;
	ev.start_boot_ns = key.start_boot_ns;
	ev.exec_id = key.exec_id;
	ev.is_target = wanted(task);
	bpf_seq_write(ctx->meta->seq, &ev, sizeof(ev));
	return 0;
}

/* An open wait of a target that the caller may not trace. */
static __always_inline void leave_out_open(struct task_struct *task)
{
	struct scratch *s;
	__u32 zero = 0;

	s = bpf_map_lookup_elem(&iter_scratch, &zero);
	if (s && (!bpf_core_field_exists(task->on_cpu) || !task->on_cpu) &&
		!(state_now(task) & (TASK_DEAD | EXIT_DEAD | EXIT_ZOMBIE)))
		count_not_owned(task, s);
}

/* The life of TASK up to now. */
static __always_inline void write_life(struct bpf_iter__task *ctx, struct task_struct *task)
{
	struct offcpu_wait *w = wait_get(task, false);
	__u64 now = bpf_ktime_get_ns();
	struct offcpu_ev_life ev = {};

	if (!w || !wanted(task) || not_owned(task) || !life_identity(&ev, task))
		return;
	if (storage == OFFCPU_STORAGE_LIVES_SO_FAR) {
		if (!life_so_far(task, w, now, &ev.life))
			return;
	} else {
		if (!life_until(task, w, now, &ev.life))
			return;
		w->life_from = OFFCPU_LIFE_REPORTED;
	}
	bpf_seq_write(ctx->meta->seq, &ev, sizeof(ev));
}

/* The stacks and wakers that TASK's storage refers to. */
static __always_inline void write_held(struct bpf_iter__task *ctx, struct task_struct *task)
{
	struct offcpu_woken *by;
	struct offcpu_wait *w;
	struct scratch *s;
	__u32 zero = 0;

	if (storage == OFFCPU_STORAGE_CUT) {
		s = bpf_map_lookup_elem(&iter_scratch, &zero);
		if (use_cgroup && s)
			look_for_cut(task, s);
	} else if (storage == OFFCPU_STORAGE_WAITS) {
		w = wait_get(task, false);
		if (w)
			bpf_seq_write(ctx->meta->seq, w, sizeof(*w));
	} else if (storage >= OFFCPU_STORAGE_LIVES_SO_FAR) {
		write_life(ctx, task);
	} else {
		by = bpf_task_storage_get(&woken, task, NULL, 0);
		if (by)
			bpf_seq_write(ctx->meta->seq, by, sizeof(*by));
	}
}

/* Waits that are still open after the recording was frozen. */
SEC("kern_iter/task")
int open_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct offcpu_ev_open ev = {};
	struct offcpu_wait *w;

	if (!task)
		return 0;
	if (hot.phase == OFFCPU_RECORDING) {
		write_held(ctx, task);
		return 0;
	}
	if (owner_only && wanted(task) && not_owned(task)) {
		leave_out_open(task);
		return 0;
	}
	w = wait_get(task, false);
	if (!w || w->start == OFFCPU_UNKNOWN || w->start == OFFCPU_ON_CPU)
		return 0;
	open_wait(&ev, task, w, w->start);
	bpf_seq_write(ctx->meta->seq, &ev, sizeof(ev));
	return 0;
}

#endif
