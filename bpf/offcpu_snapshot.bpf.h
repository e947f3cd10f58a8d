/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Snapshots of user stacks that cannot be walked yet: a process that has just
 * begun, or mapped something, waits before user space could publish it. It may
 * be dead when that is done. Part of offcpu.bpf.c.
 *
 * They cost memory and bandwidth, not correctness: what is beyond a limit is
 * counted, and the wait keeps what the walk found.
 */
#ifndef STACKTOOLS_OFFCPU_SNAPSHOT_BPF_H
#define STACKTOOLS_OFFCPU_SNAPSHOT_BPF_H

#define SNAPSHOTS_WINDOW_SHIFT 27 /* limits hold for 2^27 ns, an eighth of a second */
#define SNAPSHOTS_OF_THREAD 128
#define SNAPSHOTS_OF_CPU 512

const volatile bool snapshots;

struct snapshot_scratch {
	__u32 window, taken;
	struct offcpu_ev_snapshot ev;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct snapshot_scratch);
} snapshot_scratches SEC(".maps");

/*
 * The stack's memory from SP upwards; beyond the main thread's first frame
 * nothing is needed. A thread's first snapshot wakes the recorder: more will
 * come until it has published what this one lacks.
 */
__noinline int snapshot_send(__u64 sp, __u64 flags)
{
	struct snapshot_scratch *r;
	struct offcpu_ev_snapshot *ev;
	__u64 wanted = OFFCPU_SNAPSHOT_BYTES, bytes;
	__u32 zero = 0;

	r = bpf_map_lookup_elem(&snapshot_scratches, &zero);
	if (!r)
		return -1;
	ev = &r->ev;
	ev->from = sp & ~(OFFCPU_SNAPSHOT_PIECE - 1ULL);
	ev->bytes = 0;
	if (ev->bottom >= sp && ev->bottom - ev->from < OFFCPU_SNAPSHOT_BYTES)
		wanted = ev->bottom - ev->from + 8;
	/* pieces do not cross a page: what is there is taken as far as it is there */
	for (__u32 at = 0; at < OFFCPU_SNAPSHOT_BYTES && at < wanted; at += OFFCPU_SNAPSHOT_PIECE) {
		if (bpf_probe_read_user(ev->stack + at, OFFCPU_SNAPSHOT_PIECE, (void *)(ev->from + at)))
			break;
		ev->bytes = at + OFFCPU_SNAPSHOT_PIECE;
	}
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	bytes = ev->bytes;
	barrier_var(bytes); /* as in put() */
	if (bytes > OFFCPU_SNAPSHOT_BYTES)
		return -1;
	return bpf_ringbuf_output(
		&ring, ev, __builtin_offsetof(struct offcpu_ev_snapshot, stack) + bytes, flags);
}

/* One more of this thread, and of this CPU? */
static __always_inline bool snapshot_allowed(struct snapshot_scratch *r, struct offcpu_wait *w, __u64 now)
{
	__u32 window = now >> SNAPSHOTS_WINDOW_SHIFT;

	if (w->snapshots_window != window)
		w->snapshots = 0;
	if (r->window != window)
		r->taken = 0;
	w->snapshots_window = r->window = window;
	if (w->snapshots >= SNAPSHOTS_OF_THREAD || r->taken >= SNAPSHOTS_OF_CPU)
		return false;
	w->snapshots++;
	r->taken++;
	return true;
}

/* Send what TASK, which is current, has on its stack; the wait of KEY then has the snapshot's ID in place of
 * WALKED. */
static __always_inline struct offcpu_stack_id snapshot(struct task_struct *task, struct scratch *s,
	struct offcpu_wait *w, const struct offcpu_key *key, const struct pt_regs *regs, __u64 now,
	struct offcpu_stack_id walked)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct snapshot_scratch *r;
	__u32 zero = 0;

	r = bpf_map_lookup_elem(&snapshot_scratches, &zero);
	if (!r || !snapshot_allowed(r, w, now)) {
		s->count.snapshots_limit++;
		return walked;
	}
	/* stacks are dearer: half of the ring buffer is theirs alone */
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > 2 * ring_wake_bytes) {
		s->count.snapshots_ring++;
		return walked;
	}
	r->ev.type = OFFCPU_EV_SNAPSHOT;
	/* a thread leaves once at a time: nothing but chance could make this another stack's */
	r->ev.id.hi = (hash_key[0] ^ now) | 1;
	r->ev.id.lo = hash_key[1] ^ now << 32 ^ key->tid;
	r->ev.walked = walked;
	r->ev.time_ns = now;
	r->ev.start_boot_ns = key->start_boot_ns;
	r->ev.tgid = key->tgid;
	r->ev.exec_id = key->exec_id;
	r->ev.bottom = mm ? BPF_CORE_READ(mm, start_stack) : 0;
	if (bpf_probe_read_kernel(r->ev.regs, sizeof(r->ev.regs), regs) ||
		snapshot_send(PT_REGS_SP(regs), w->snapshots == 1 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP)) {
		s->count.snapshots_ring++;
		return walked;
	}
	s->count.snapshots++;
	return r->ev.id;
}

#endif
