/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the frames that a helper took to the ID of a stack. A stack is sent to
 * user space when it is first seen. Part of offcpu.bpf.c.
 */
#ifndef STACKTOOLS_OFFCPU_STACKS_BPF_H
#define STACKTOOLS_OFFCPU_STACKS_BPF_H

const volatile bool kernel_stacks = true;
const volatile bool user_stacks = true;
const volatile __u32 max_stack = 127; /* kernel.perf_event_max_stack: no helper returns more */
const volatile __u64 hash_key[4] = { 1, 1, 1, 1 };
const volatile bool by_table; /* user stacks by unwind tables, else by frame pointer */
const volatile __u64 ring_wake_bytes = 1 << 20;

/*
 * Stacks and wakers are sent once in an epoch: user space, before it forgets those that nothing uses, begins
 * another one.
 */
__u32 epoch = 0;
enum offcpu_storage storage = 0; /* which one the iterator open_waits writes while the recording goes on */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct offcpu_stack_id);
	__type(value, __u32); /* the epoch in which it was sent */
} seen SEC(".maps");

static __always_inline bool is_seen(const struct offcpu_stack_id *id)
{
	const __u32 *sent = bpf_map_lookup_elem(&seen, id);

	return sent && *sent == epoch;
}

static __always_inline void set_seen(const struct offcpu_stack_id *id)
{
	__u32 now = epoch;

	bpf_map_update_elem(&seen, id, &now, BPF_ANY);
}

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} ring SEC(".maps");

struct scratch {
	struct offcpu_counters count;
	struct unwind_walk walk;
	struct script_walk script;
	struct hotspot_walk hotspot;
	union {
		struct v8_walk v8;
		/*
		 * mode raw: a copy of struct pt_regs, as programs cannot load it directly; it has no
		 * scripts. Words: a struct here would pass for one whose members libbpf finds
		 */
		__u64 regs[OFFCPU_SNAPSHOT_REGS];
	};
	struct offcpu_ev_stack ev;
	struct offcpu_key key; /* of the wait that is being summed */
	__u64 cpu_last_ns; /* when the clock of this CPU fired last (offcpu_cpu.bpf.h) */
#ifndef OFFCPU_RAW
	struct offcpu_ev_waker waker;
#endif
};

/* of an element of a map for each CPU: PCPU_MIN_UNIT_SIZE */
_Static_assert(sizeof(struct scratch) <= 32768, "scratch");

/* Entry 0: the switch program, which nothing interrupts. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* For the iterators, which can be preempted: they run one at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} iter_scratch SEC(".maps");

static __always_inline struct scratch *my_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

/* Of these programs: that of current, or of the iterators. */
static __always_inline struct scratch *this_scratch(void)
{
#ifndef OFFCPU_RAW
	__u32 zero = 0;

	if (remote)
		return bpf_map_lookup_elem(&iter_scratch, &zero);
#endif
	return my_scratch();
}

static __always_inline struct unwind_walk *this_walk(void)
{
	struct scratch *s = this_scratch();

	return s ? &s->walk : NULL;
}

/* Words of frames[]: of native frames and of script frames. */
static __always_inline __u32 stack_words(const struct offcpu_ev_stack *ev)
{
	return ev->len + 2 * ev->scripts;
}

/* Return false if the stack could not be sent. ONCE: do not send it again. */
static __always_inline bool put(struct offcpu_ev_stack *ev, struct scratch *s, bool once)
{
	__u64 flags = BPF_RB_NO_WAKEUP, bytes;

	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	bytes = __builtin_offsetof(struct offcpu_ev_stack, frames) + stack_words(ev) * 8ULL;
	/* last and in a register: before Linux 6.2 the verifier derives no bounds from a check in memory */
	barrier_var(bytes);
	if (bytes > sizeof(*ev))
		return false;
	if (bpf_ringbuf_output(&ring, ev, bytes, flags)) {
		s->count.ring_full++;
		return false;
	}
	if (once)
		set_seen(&ev->id);
	return once;
}

#define HASH_STEP 8 /* frames at once */
#define HASH_STEPS 20 /* ... of these at once */

/*
 * Hash the next eight frames. Zeros follow the last frame; they are unambiguous
 * because the length is hashed already.
 */
__noinline int hash_some(__u32 at)
{
	struct scratch *s = this_scratch();
	__u64 ma = hash_key[2] | 1, mb = hash_key[3] | 1, a, b;
	const __u64 *frames;
	__u32 left, words;

	if (!s || at > OFFCPU_FRAMES_MAX - HASH_STEP)
		return false;
	words = stack_words(&s->ev);
	if (at >= words)
		return false;
	left = words - at;
	a = s->ev.id.hi;
	b = s->ev.id.lo;
	barrier_var(at);
	frames = s->ev.frames + at;
	for (__u32 k = 0; k < HASH_STEP; k++) {
		__u64 frame = k < left ? frames[k] : 0;

		a = (a ^ frame) * ma;
		a ^= a >> 29;
		b = (b + frame) * mb;
		b = b >> 31 | b << 33;
	}
	s->ev.id.hi = a;
	s->ev.id.lo = b;
	return true;
}

/* Hash so many frames from AT on. False if they were the last ones. */
__noinline int hash_many(__u32 at)
{
	for (__u32 i = 0; i < HASH_STEPS; i++)
		if (!hash_some(at + i * HASH_STEP))
			return false;
	return true;
}

/*
 * Two lanes: each frame enters one by xor and the other by addition, and each
 * lane is multiplied by a secret odd number. To make two stacks collide, one
 * would have to know these numbers.
 */
__noinline int hash_frames(void)
{
	__u64 ma = hash_key[2] | 1, mb = hash_key[3] | 1, a, b;
	struct scratch *s = this_scratch();
	struct offcpu_ev_stack *ev;

	if (!s)
		return 0;
	ev = &s->ev;
	a = hash_key[0] ^ ((__u64)ev->reason << 16 | (__u64)ev->kind << 8 | ev->verdict);
	ev->id.hi = (a ^ ev->stop_pc) * ma;
	ev->id.lo = hash_key[1] + ev->len +
		    ((__u64)ev->scripts << 16 | (__u64)ev->runtime << 32 | (__u64)ev->script_reason << 40);
	for (__u32 at = 0; at < OFFCPU_FRAMES_MAX; at += HASH_STEPS * HASH_STEP)
		if (!hash_many(at))
			break;
	a = ev->id.hi;
	b = ev->id.lo;
	a = (a ^ b >> 32) * ma;
	a ^= a >> 32;
	b = (b ^ a) * mb;
	b ^= b >> 29;
	ev->id.hi = a ? a : 1;
	ev->id.lo = b;
	return 0;
}

/* Compute the ID of the frames, verdict and reason in the scratch event. True if it was not sent yet. */
static __always_inline bool is_new(
	struct scratch *s, struct offcpu_wait *w, const struct offcpu_stack_id *last)
{
	struct offcpu_ev_stack *ev = &s->ev;

	ev->type = OFFCPU_EV_STACK;
	hash_frames();
	/*
	 * Same stack as in the last wait of this thread: already sent, unless that failed. Perhaps in an
	 * earlier epoch: other threads, which have the stack by its trail, would not know.
	 */
	if (ev->id.hi == last->hi && ev->id.lo == last->lo && !(w->unsent & 1) && !s->walk.trail)
		return false;
	return !is_seen(&ev->id);
}

/* The walk of current, which leaves a trail, has led to the stack in the scratch event. */
__noinline int trail_reached(void)
{
	struct scratch *s = my_scratch();
	struct trail *t;

	t = s ? trail_of(s->walk.trail) : NULL;
	if (!t)
		return 0;
	s->walk.trail = 0;
	if (is_seen(&s->ev.id))
		trail_end(t, &s->ev.id, epoch);
	return 0;
}

static __always_inline void no_scripts(struct offcpu_ev_stack *ev)
{
	ev->scripts = 0;
	ev->runtime = 0;
	ev->script_reason = 0;
}

/* What the walk has found, in the scratch event, which has its frames. */
static __always_inline void walk_to_event(struct scratch *s)
{
	const struct unwind_walk *u = &s->walk;

	s->ev.kind = KIND_USER;
	s->ev.verdict = u->verdict;
	s->ev.reason = u->reason;
	s->ev.stop_pc = u->reason && u->reason != REASON_DEPTH ? u->pc : 0;
	s->ev.len = u->len;
}

/* Identify the native frames in the scratch event that the walk has found. */
__noinline int hash_native(void)
{
	struct scratch *s = my_scratch();

	if (!s)
		return 0;
	walk_to_event(s);
	no_scripts(&s->ev);
	hash_frames();
	return 0;
}

/* Identify a stack without script frames. Send it if it was not sent yet. */
static __always_inline struct offcpu_stack_id identify_marked(
	struct scratch *s, struct offcpu_wait *w, const struct offcpu_stack_id *last, __u8 mark)
{
	no_scripts(&s->ev);
	s->ev.script_reason = mark;
	if (is_new(s, w, last))
		w->unsent |= put(&s->ev, s, true) ? 0 : 2;
	if (s->walk.trail)
		trail_reached();
	return s->ev.id;
}

static __always_inline struct offcpu_stack_id identify(
	struct scratch *s, struct offcpu_wait *w, const struct offcpu_stack_id *last)
{
	return identify_marked(s, w, last, 0);
}

/* EV has a stack of KIND: BYTES of frames, as the helper takes them. */
static __always_inline void taken_stack(struct offcpu_ev_stack *ev, long bytes, __u8 kind)
{
	__u32 limit = kind == KIND_KERNEL ? depth + OFFCPU_OWN_FRAMES : depth;

	ev->kind = kind;
	ev->verdict = kind == KIND_KERNEL ? VERDICT_COMPLETE : VERDICT_UNVERIFIED;
	ev->reason = 0;
	ev->stop_pc = 0;
	ev->len = (__u64)bytes >> 3;
	/*
	 * The helper was given room for one frame more than wanted: if that
	 * frame is present, the stack was cut. At the kernel's own limit
	 * nothing proves that there were no more frames.
	 */
	if (ev->len > limit || ev->len >= max_stack) {
		if (kind == KIND_KERNEL)
			ev->verdict = VERDICT_TRUNCATED;
		else
			ev->reason = REASON_DEPTH;
	}
	if (ev->len > limit)
		ev->len = limit;
}

/*
 * Identify the stack that a helper left in the scratch event: BYTES of frames, or -errno. MARK: 0, or
 * OFFCPU_NOT_TRACED.
 */
static __always_inline struct offcpu_stack_id marked_stack(struct scratch *s, struct offcpu_wait *w,
	const struct offcpu_stack_id *last, long bytes, __u8 kind, __u8 mark)
{
	struct offcpu_ev_stack *ev = &s->ev;
	struct offcpu_stack_id none = {};

	if (bytes <= 0) {
		s->walk.trail = 0;
		none.lo = bytes ? OFFCPU_FAILED(REASON_ERRNO, bytes) : OFFCPU_FAILED(REASON_EMPTY, 0);
		if (kind == KIND_KERNEL)
			s->count.kernel_failed++;
		else
			s->count.user_failed++;
		return none;
	}
	taken_stack(ev, bytes, kind);
	return identify_marked(s, w, last, mark);
}

static __always_inline struct offcpu_stack_id helper_stack(
	struct scratch *s, struct offcpu_wait *w, const struct offcpu_stack_id *last, long bytes, __u8 kind)
{
	return marked_stack(s, w, last, bytes, kind, 0);
}

/* Room for one frame more than the limit of KIND. */
static __always_inline __u32 stack_bytes(__u8 kind)
{
	__u32 bytes = (depth + 1 + (kind == KIND_KERNEL ? OFFCPU_OWN_FRAMES : 0)) * 8;

	return bytes <= sizeof(((struct offcpu_ev_stack *)0)->frames) ? bytes : 0;
}

static __always_inline struct offcpu_stack_id no_stack(__u32 reason)
{
	struct offcpu_stack_id none = { .hi = 0, .lo = OFFCPU_FAILED(reason, 0) };

	return none;
}

/*
 * The reason why TASK cannot have a user stack now, or 0 if it can.
 *
 * Pointers inside a task are read as numbers or with a helper (BPF_CORE_READ), not as
 * pointers: for each direct load of one the verifier searches the whole BTF of the
 * kernel (Linux 6.3 and later), which costs milliseconds at every start.
 */
static __always_inline __u32 no_user_reason(struct task_struct *task)
{
	const struct mm_struct *mm;

	if (!user_stacks)
		return REASON_NOT_RECORDED;
	if (task_get(task, flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return REASON_KTHREAD;
	mm = (void *)kernel_member(task, mm);
	if (!mm)
		return REASON_EXITING;
	/*
	 * From exec's new address space until the new program's registers are
	 * set, the saved registers belong to the old program. start_code is set
	 * right before they are, when everything is mapped (start_stack is set
	 * earlier, and then once more).
	 */
	if (!kernel_member(mm, start_code))
		return REASON_EXEC;
	return 0;
}

#endif
