/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who ended a wait: at sched_waking, in the context of the thread or interrupt that wakes another
 * thread. Part of offcpu.bpf.c.
 *
 * A thread that has left the CPU gets it back only after a wake-up, so the last one before it
 * returns ended its wait. One that comes while the thread is still leaving ends the wait that begins, or
 * the thread turns back and does not wait; then the next one takes its place.
 *
 * A waker is identified by a hash over its thread, its stacks and its own waker, as a stack is by
 * its frames, and sent when it is first seen. Each thread keeps the chains of 1, 2 ... wakers that
 * led to its last wake-up: the chain of N is its waker and that one's chain of N - 1. A waker that is
 * not a target keeps them from the first time that it wakes a thread whose chain is wanted.
 */
#ifndef STACKTOOLS_OFFCPU_WAKERS_BPF_H
#define STACKTOOLS_OFFCPU_WAKERS_BPF_H

#define WAKER_FRAMES_MAX 127 /* of its kernel stack */
/* Enough for most threads and interrupts: each frame costs, and behind an interrupt there may be many. */
#define WAKER_FRAMES_THREAD 32
#define WAKER_FRAMES_INTERRUPT 12
/* From a wake-up to the switch: a few us, unless a hypervisor takes a CPU away. */
#define WAKER_EARLY_NS 10000000

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct offcpu_woken);
} woken SEC(".maps");

/*
 * The chain that ended the wait of TASK that KEY describes, and which began at START. *CAME is set to when it
 * did, if it is known.
 */
static __always_inline struct offcpu_stack_id waker_of(
	struct task_struct *task, const struct offcpu_key *key, __u64 start, __u64 *came_ns)
{
	struct offcpu_stack_id none = {};
	struct offcpu_woken *w;
	__u32 last = waker_steps - 1;
	__u64 came;

	if (!waker_steps || key->flags & (OFFCPU_F_PREEMPTED | OFFCPU_F_THROTTLED))
		return none;
	w = bpf_task_storage_get(&woken, task, NULL, 0);
	if (!w || !w->time_ns || last >= OFFCPU_WAKERS_MAX)
		return no_stack(REASON_NOT_SEEN);
	came = w->time_ns;
	*came_ns = came;
	w->time_ns = 0;
	if (w->early && start > OFFCPU_INITIAL && came < start && start - came > WAKER_EARLY_NS)
		return no_stack(REASON_NOT_SEEN);
	return w->by[last];
}

/* Has TASK, which is not current, left the CPU, or is about to, with no way back but this wake-up? */
static __always_inline bool is_asleep(struct task_struct *task)
{
	struct sched_entity___delayed *se = (void *)&task->se;

	/* since 6.12 it stays on the queue for a while */
	return !task->on_rq || (bpf_core_field_exists(se->sched_delayed) && se->sched_delayed);
}

/* The number of the first of N frames where an interrupt entered the kernel, plus one; 0 = there is none. */
__noinline int interrupt_frame(__u32 n)
{
	struct scratch *s = my_scratch();

	for (__u32 i = 0; s && i < n && i < WAKER_FRAMES_MAX; i++)
		if (enters_kernel(s->ev.frames[i]))
			return i + 1;
	return 0;
}

struct waker_frames {
	long bytes; /* of the kernel stack, in the scratch event, or -errno; of an interrupt its own part */
	bool interrupt;
};

/*
 * The kernel stack of TASK, the current thread, by our own walk, as in kernel_stack(). Returns bytes of
 * frames; 0 = bpf_get_stack() is needed, and if *AFTER then orc_after(). Of an interrupt only its own part is
 * walked.
 */
static __always_inline long walk_waker(void *ctx, struct task_struct *task, struct scratch *s, bool *after)
{
#if defined(__TARGET_ARCH_x86)
	struct orc_walk *k = my_orc_walk();
	const struct pt_regs *regs;
	long n;

	if (!k || (!by_table && user_stacks))
		return 0;
	regs = (void *)bpf_task_pt_regs(task);
	k->ctx = (__u64)ctx;
	k->regs = (__u64)regs;
	k->event = ORC_WAKING;
	k->trail = 0;
	n = 8L * orc_take((regs->cs & 3) == 3);
	*after = k->after;
	return n;
#else
	return 0;
#endif
}

/* bpf_get_stack() has left BYTES of frames in the scratch event: orc_after(). */
static __always_inline void compare_walk(struct scratch *s, long bytes)
{
#if defined(__TARGET_ARCH_x86)
	taken_stack(&s->ev, bytes, KIND_KERNEL);
	no_scripts(&s->ev);
	hash_frames();
	orc_after();
#endif
}

static __always_inline struct waker_frames take_frames(
	void *ctx, struct task_struct *task, struct scratch *s, bool was_interrupt)
{
	const __u32 few = (was_interrupt ? WAKER_FRAMES_INTERRUPT : WAKER_FRAMES_THREAD) * 8;
	bool after = false;
	long n = walk_waker(ctx, task, s, &after);
	const bool walked = n > 0;
	int cut;

	if (after) {
		/* a call of its own, from one place: that is the first frame, which walks begin with */
		n = bpf_get_stack(ctx, s->ev.frames, WAKER_FRAMES_MAX * 8, 0);
	} else if (!walked) {
		n = bpf_get_stack(ctx, s->ev.frames, few, 0);
	}
	cut = n > 0 ? interrupt_frame((__u64)n >> 3) : 0;
	if (after && n > 0)
		compare_walk(s, cut ? cut * 8L : n);
	if (n == few && !cut && !after && !walked) {
		n = bpf_get_stack(ctx, s->ev.frames, WAKER_FRAMES_MAX * 8, 0);
		cut = n > 0 ? interrupt_frame((__u64)n >> 3) : 0;
	}
	return (struct waker_frames){ .bytes = cut ? cut * 8L : n, .interrupt = cut };
}

/* Set s->waker to TASK, which wakes the thread of TO now, without its own waker. */
static __always_inline void take_waker(
	void *ctx, struct task_struct *task, struct scratch *s, struct offcpu_woken *to, __u64 now)
{
	const struct waker_frames frames = take_frames(ctx, task, s, to->interrupt);
	struct offcpu_wait *w = wait_get(task, true);
	struct offcpu_waker *waker = &s->waker.waker;
	struct offcpu_key *key = &s->key;
	__u32 unsent;

	*waker = (struct offcpu_waker){};
	/* one after the other: all at once, they take 32 bytes of stack */
	*key = (struct offcpu_key){};
	key->kernel = to->kernel;
	key->user = to->user;
	waker->kernel = no_stack(kernel_stacks ? REASON_NOT_SEEN : REASON_NOT_RECORDED);
	waker->user = no_stack(REASON_NOT_SEEN);
	s->waker.time_ns = now;
	s->count.waker_storage += !w;
	to->interrupt = frames.interrupt || !task->pid;
	if (to->interrupt)
		waker->flags = OFFCPU_WAKER_INTERRUPT;
	else if (!w || not_owned(task) || !key_identity(key, task))
		waker->flags = OFFCPU_WAKER_HIDDEN;
	if (!w || waker->flags & OFFCPU_WAKER_HIDDEN)
		return;
	unsent = w->unsent;
	w->unsent = 0;
	if (kernel_stacks)
		waker->kernel = marked_stack(s, w, &key->kernel, frames.bytes, KIND_KERNEL, OFFCPU_WAKING);
	if (to->interrupt) {
		waker->user = no_stack(REASON_USER_MODE);
	} else {
		waker->tgid = key->tgid;
		waker->tid = key->tid;
		waker->start_boot_ns = key->start_boot_ns;
		waker->exec_id = key->exec_id;
		if (w->announced != key->exec_id + 1)
			announce(task, w, s, key, now);
		waker->user = user_stack(ctx, task, s, w, key, now);
	}
	to->kernel = w->unsent ? no_stack(0) : waker->kernel;
	to->user = w->unsent ? no_stack(0) : waker->user;
	w->unsent = unsent;
}

/*
 * Set the ID of the waker in the scratch event, with what is behind it, and send it if that was not done yet.
 * The ID there is that of the wake-up before. By itself, for the 512 bytes of stack that it has with its
 * callees.
 */
__noinline int identify_waker(void)
{
	__u64 ma = hash_key[2] | 1, mb = hash_key[3] | 1, a = hash_key[1] + 1, b = hash_key[0] + 1;
	struct scratch *s = my_scratch();
	struct offcpu_ev_waker *ev;
	struct offcpu_stack_id last;
	const __u64 *words;

	if (!s)
		return 0;
	ev = &s->waker;
	last = ev->id;
	words = (const __u64 *)&ev->waker;
#pragma unroll
	for (__u32 i = 0; i < sizeof(ev->waker) / 8; i++) {
		a = (a ^ words[i]) * ma;
		a ^= a >> 29;
		b = (b + words[i]) * mb;
		b = b >> 31 | b << 33;
	}
	a = (a ^ b >> 32) * ma;
	ev->id.hi = a ^ a >> 32 ?: 1;
	ev->id.lo = (b ^ ev->id.hi) * mb;
	if ((ev->id.hi == last.hi && ev->id.lo == last.lo) || is_seen(&ev->id))
		return 0;
	ev->type = OFFCPU_EV_WAKER;
	if (!bpf_ringbuf_output(&ring, ev, sizeof(*ev), BPF_RB_NO_WAKEUP)) {
		set_seen(&ev->id);
		return 0;
	}
	s->count.ring_waker++;
	ev->id = no_stack(REASON_NOT_SEEN);
	return 0;
}

EVENT("sched_waking")
int record_waking(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0], *current_task = bpf_get_current_task_btf();
	const struct offcpu_stack_id *next = NULL;
	const bool target = wanted(task);
	struct scratch *s = my_scratch();
	struct offcpu_woken *to, *from = NULL;
	__u32 steps;

	if (!s)
		return 0;
	to = bpf_task_storage_get(&woken, task, NULL, target ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!to) {
		s->count.waker_storage++;
		return 0;
	}
	steps = target ? waker_steps : to->steps;
	take_waker(ctx, current_task, s, to, bpf_ktime_get_ns());
	if (steps > 1 && !s->waker.waker.flags)
		from = bpf_task_storage_get(&woken, current_task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (from && from->steps < steps - 1)
		from->steps = steps - 1;
	for (__u32 i = 0; i < OFFCPU_WAKERS_MAX && i < steps; i++) {
		s->waker.waker.next = next ? *next : (struct offcpu_stack_id){};
		s->waker.id = to->by[i];
		identify_waker();
		to->by[i] = s->waker.id;
		next = from ? &from->by[i] : NULL;
	}
	to->early = !is_asleep(task);
	to->time_ns = s->waker.time_ns;
	return 0;
}

/*
 * Runs at every wake-up of every task; as sched_switch() it is a program of its own. A thread that is
 * woken while it runs has not left the CPU.
 */
EVENT("sched_waking")
int sched_waking(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	/* not with --wakers=2 and more, where a thread that is not a target can have a chain: write_code() */
	if (is_other(task))
		return 0;
	if ((hot.phase != OFFCPU_RECORDING && hot.phase != OFFCPU_ARMED) ||
		(__u64)task == bpf_get_current_task())
		return 0;
	if (wanted(task) || (waker_steps > 1 && bpf_task_storage_get(&woken, task, NULL, 0)))
		bpf_tail_call(ctx, &recording_wakers, 0);
	return 0;
}

#endif
