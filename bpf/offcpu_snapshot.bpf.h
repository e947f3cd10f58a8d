/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Snapshots of user stacks that cannot be walked yet: a process that has just
 * begun, or has just mapped something, waits before user space could publish
 * its mappings or tables. The process may be gone by the time they are
 * published. Part of offcpu.bpf.c.
 *
 * Snapshots cost memory and bandwidth and are not needed for correctness: those
 * beyond a limit are counted, and the wait keeps the stack that the walk found.
 */
#ifndef STACKTOOLS_OFFCPU_SNAPSHOT_BPF_H
#define STACKTOOLS_OFFCPU_SNAPSHOT_BPF_H

#define SNAPSHOTS_WINDOW_SHIFT 27 /* limits apply per 2^27 ns, about an eighth of a second */
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
 * Copy stack memory from SP upwards, but nothing beyond the first frame of the
 * main thread. The first snapshot of a thread in a window wakes the recorder:
 * more will come until it has published what this one lacks.
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
	/* pieces do not cross a page: copy as far as memory is readable */
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

/* Do the limits of this thread and this CPU allow one more snapshot? */
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

/*
 * Send the registers and stack of TASK, which is current. The wait of KEY then
 * gets the snapshot's ID in place of WALKED.
 */
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
	/* stacks are more valuable: half of the ring buffer is reserved for them */
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > 2 * ring_wake_bytes) {
		s->count.snapshots_ring++;
		return walked;
	}
	r->ev.type = OFFCPU_EV_SNAPSHOT;
	/* a thread leaves only once at a time: only by chance could this be the ID of another stack */
	r->ev.id.hi = (hash_key[0] ^ now) | 1;
	r->ev.id.lo = hash_key[1] ^ now << 32 ^ key->tid;
	r->ev.walked = walked;
	r->ev.time_ns = now;
	r->ev.start_boot_ns = key->start_boot_ns;
	r->ev.tgid = key->tgid;
	r->ev.exec_id = key->exec_id;
	r->ev.bottom = mm ? BPF_CORE_READ(mm, start_stack) : 0;
	s->walk.here.at = 0;
	code_around(&s->walk, &s->walk.here, PT_REGS_IP(regs));
	r->ev.code_before = s->walk.here.before;
	r->ev.code_after = s->walk.here.after;
	if (bpf_probe_read_kernel(r->ev.regs, sizeof(r->ev.regs), regs) ||
		snapshot_send(PT_REGS_SP(regs), w->snapshots == 1 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP)) {
		s->count.snapshots_ring++;
		return walked;
	}
	s->count.snapshots++;
	return r->ev.id;
}

#endif
