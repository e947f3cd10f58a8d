/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Off-CPU recording at tp_btf/sched_switch.
 *
 * A thread that leaves the CPU is still `current` there, so both its stacks
 * can be taken; the wait's key and start time are kept in its task storage,
 * which follows it to whatever CPU it returns on. When it returns, the wait
 * is added to the aggregation map under its key. A key holds the thread's id,
 * and a thread runs on one CPU at a time, so no two CPUs ever update the same
 * element and plain additions are exact.
 *
 * A stack's identity is a 128-bit hash under a key that is drawn anew for
 * each recording. `seen` is only a cache of the stacks that were already
 * sent: what it forgets is sent again, and user space keeps the first.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "offcpu_abi.h"

char LICENSE[] SEC("license") = "GPL";

/* enum cap_stack_kind, cap_verdict, cap_reason: lib/offcpu.c asserts that these agree */
enum { KIND_KERNEL = 1, KIND_USER = 2 };
enum { VERDICT_COMPLETE = 1, VERDICT_UNVERIFIED = 2, VERDICT_TRUNCATED = 3 };
enum {
	REASON_ERRNO = 1,
	REASON_KTHREAD = 2,
	REASON_EXEC = 3,
	REASON_NOT_ASKED = 4,
	REASON_NOT_SEEN = 5,
	REASON_EXITING = 7,
	REASON_EMPTY = 9,
};

const volatile bool all_tasks;
const volatile bool use_tids;
const volatile bool use_comms;
const volatile bool with_kthreads;
const volatile bool follow;
const volatile bool kernel_stacks = true;
const volatile bool user_stacks = true;
const volatile bool record_preempted;
const volatile __u32 depth = 127;
const volatile __u32 state_mask;
const volatile __u64 min_ns;
const volatile __u64 max_ns = ~0ULL;
const volatile __u64 hash_key[4] = { 1, 1, 1, 1 };
const volatile __u64 ring_wake_bytes = 1 << 20;

__u32 phase; /* enum offcpu_phase */
__u64 record_start_ns; /* CLOCK_MONOTONIC */
__u64 record_start_boot; /* the same instant, CLOCK_BOOTTIME */
__u32 ns_level; /* of the recorder's PID namespace; 0 = the first one */
__u32 ns_inum;
__u32 self_tgid; /* global id of the recorder, never recorded */
__u32 exec_target; /* a process (id of the recorder's namespace) that becomes a target when it execs */
__u64 inserted; /* new elements of the aggregation maps, ever */
char comms[OFFCPU_COMMS_MAX][OFFCPU_COMM_LEN];
__u32 n_comms;

/* Bit sets over global ids, sized to pid_max: exact, and one load a look-up. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u64);
} tgids SEC(".maps"), tids SEC(".maps");

/* What -p and -t asked for, as ids of the recorder's namespace, for find_targets. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} asked_pids SEC(".maps"), asked_tids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct offcpu_wait);
} waits SEC(".maps");

struct agg_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(key_size, sizeof(struct offcpu_key));
	__uint(value_size, sizeof(struct offcpu_value));
};

/* One slot: the aggregation map in use. User space swaps it at every flush. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, struct agg_map);
} agg SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct offcpu_stack_id);
	__type(value, __u8);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} ring SEC(".maps");

struct scratch {
	struct offcpu_counters count;
	struct offcpu_ev_stack ev;
};

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

static __always_inline bool bit_get(void *map, __u32 id)
{
	__u32 word = id >> 6;
	__u64 *bits = bpf_map_lookup_elem(map, &word);

	return bits && (*bits >> (id & 63) & 1);
}

static __always_inline void bit_set(void *map, __u32 id)
{
	__u32 word = id >> 6;
	__u64 *bits = bpf_map_lookup_elem(map, &word);

	if (bits)
		__sync_fetch_and_or(bits, 1ULL << (id & 63));
}

static __always_inline void bit_clear(void *map, __u32 id)
{
	__u32 word = id >> 6;
	__u64 *bits = bpf_map_lookup_elem(map, &word);

	if (bits)
		__sync_fetch_and_and(bits, ~(1ULL << (id & 63)));
}

/* The id of TASK in the recorder's PID namespace, 0 when it is not visible there. */
static __always_inline __u32 our_id(struct task_struct *task)
{
	struct pid *pid;
	struct pid_namespace *ns;
	struct upid *up;

	if (!ns_level)
		return BPF_CORE_READ(task, pid);
	pid = BPF_CORE_READ(task, thread_pid);
	if (!pid || BPF_CORE_READ(pid, level) < ns_level)
		return 0;
	up = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
	     ns_level * bpf_core_type_size(struct upid);
	ns = BPF_CORE_READ(up, ns);
	if (!ns || BPF_CORE_READ(ns, ns.inum) != ns_inum)
		return 0;
	return BPF_CORE_READ(up, nr);
}

/* The id of TASK in its own, innermost PID namespace. */
static __always_inline __u32 own_id(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid *up;

	if (!pid)
		return 0;
	up = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
	     BPF_CORE_READ(pid, level) * bpf_core_type_size(struct upid);
	return BPF_CORE_READ(up, nr);
}

static __always_inline bool wanted(struct task_struct *task)
{
	if (all_tasks)
		return task->pid && (with_kthreads || !(task->flags & PF_KTHREAD)) &&
		       (__u32)task->tgid != self_tgid;
	if (bit_get(&tgids, task->tgid))
		return true;
	return use_tids && bit_get(&tids, task->pid);
}

static __always_inline void put(struct offcpu_ev_stack *ev, struct scratch *s)
{
	__u64 bytes = __builtin_offsetof(struct offcpu_ev_stack, frames) + ev->len * 8ULL;
	__u64 flags = BPF_RB_NO_WAKEUP;
	__u8 one = 1;

	if (bytes > sizeof(*ev))
		return;
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(&ring, ev, bytes, flags))
		s->count.ring_full++;
	else
		bpf_map_update_elem(&seen, &ev->id, &one, BPF_ANY);
}

/*
 * Two lanes that every frame enters by xor and by addition, each multiplied by
 * a secret odd number: to make two stacks collide one would have to know them.
 * A global function: the verifier walks its loop once, not once a caller.
 */
__noinline int hash_frames(struct offcpu_ev_stack *ev)
{
	__u64 ma = hash_key[2] | 1, mb = hash_key[3] | 1, a, b;
	__u32 len;

	if (!ev)
		return 0;
	len = ev->len;
	a = hash_key[0] ^ ((__u64)ev->kind << 8 | ev->verdict);
	b = hash_key[1] + len;
	for (__u32 i = 0; i < OFFCPU_DEPTH_MAX && i < depth && i < len; i++) {
		__u64 frame = ev->frames[i];

		a = (a ^ frame) * ma;
		a ^= a >> 29;
		b = (b + frame) * mb;
		b = b >> 31 | b << 33;
	}
	a = (a ^ b >> 32) * ma;
	a ^= a >> 32;
	b = (b ^ a) * mb;
	b ^= b >> 29;
	ev->id.hi = a ? a : 1;
	ev->id.lo = b;
	return 0;
}

/*
 * What a helper left in the scratch event (BYTES of frames, or -errno) becomes
 * an identity; a stack not sent before is sent.
 */
static __always_inline struct offcpu_stack_id stack_id(struct scratch *s, long bytes, __u8 kind, __u8 verdict)
{
	struct offcpu_ev_stack *ev = &s->ev;
	struct offcpu_stack_id none = {};

	if (bytes <= 0) {
		none.lo = bytes ? OFFCPU_FAILED(REASON_ERRNO, bytes) : OFFCPU_FAILED(REASON_EMPTY, 0);
		if (kind == KIND_KERNEL)
			s->count.kernel_failed++;
		else
			s->count.user_failed++;
		return none;
	}
	ev->type = OFFCPU_EV_STACK;
	ev->kind = kind;
	ev->verdict = verdict;
	ev->len = (__u64)bytes >> 3;
	/* one frame more than wanted was asked for: its presence proves the cut */
	if (ev->len > depth) {
		ev->len = depth;
		ev->verdict = VERDICT_TRUNCATED;
		s->count.truncated++;
	}
	hash_frames(ev);
	if (!bpf_map_lookup_elem(&seen, &ev->id))
		put(ev, s);
	return ev->id;
}

static __always_inline __u32 stack_bytes(void)
{
	__u32 bytes = (depth + 1) * 8;

	return bytes <= sizeof(((struct offcpu_ev_stack *)0)->frames) ? bytes : 0;
}

static __always_inline struct offcpu_stack_id no_stack(__u32 reason)
{
	struct offcpu_stack_id none = { .hi = 0, .lo = OFFCPU_FAILED(reason, 0) };

	return none;
}

/*
 * Pointers inside a task are read with a helper (BPF_CORE_READ), not directly:
 * for each direct load of one the verifier searches the kernel's whole BTF
 * (Linux 6.3 and later), which costs milliseconds at every start.
 *
 * Why TASK cannot have a user stack now; 0 when it can.
 */
static __always_inline __u32 no_user_reason(struct task_struct *task)
{
	struct mm_struct *mm;

	if (!user_stacks)
		return REASON_NOT_ASKED;
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return REASON_KTHREAD;
	mm = BPF_CORE_READ(task, mm);
	if (!mm)
		return REASON_EXITING;
	/*
	 * From exec's new address space until the new program's registers are
	 * set, the saved registers belong to the old program: start_stack is
	 * zero for just that time.
	 */
	if (!BPF_CORE_READ(mm, start_stack))
		return REASON_EXEC;
	return 0;
}

static __always_inline void announce(
	struct task_struct *task, struct offcpu_wait *w, struct scratch *s, const struct offcpu_key *key)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct offcpu_ev_thread *ev = bpf_ringbuf_reserve(&ring, sizeof(*ev), 0);

	if (!ev) {
		s->count.ring_thread++;
		return;
	}
	ev->type = OFFCPU_EV_THREAD;
	ev->task_flags = task->flags;
	ev->tgid = key->tgid;
	ev->tid = key->tid;
	ev->ns_tgid = own_id(leader);
	ev->ns_tid = own_id(task);
	ev->start_boot_ns = key->start_boot_ns;
	ev->exec_id = key->exec_id;
	ev->pad = 0;
	BPF_CORE_READ_STR_INTO(&ev->comm, task, comm);
	BPF_CORE_READ_STR_INTO(&ev->leader_comm, leader, comm);
	bpf_ringbuf_submit(ev, BPF_RB_NO_WAKEUP);
	w->announced = key->exec_id + 1;
}

/* Idle waits (NOLOAD) have the bit of D too, but are a state of their own for ps and for us. */
static __always_inline bool state_wanted(__u32 state)
{
	return state & (state & TASK_NOLOAD ? state_mask & TASK_NOLOAD : state_mask);
}

/*
 * Who waits, in KEY. It stays true until the process execs, so it is read
 * again only then. False when the recorder cannot see the task.
 */
static __always_inline bool key_identity(struct offcpu_key *key, struct task_struct *task)
{
	struct task_struct *leader;
	__u32 exec_id = task->self_exec_id;

	if (key->tid && key->exec_id == exec_id)
		return true;
	leader = BPF_CORE_READ(task, group_leader);
	key->tid = our_id(task);
	key->tgid = our_id(leader);
	key->start_boot_ns = BPF_CORE_READ(leader, start_boottime);
	key->exec_id = exec_id;
	return key->tid != 0;
}

/* Everything of the key but the stacks; false when the recorder cannot see the task. */
static __always_inline bool key_init(
	struct offcpu_key *key, struct task_struct *task, bool runnable, __u32 state)
{
	if (!key_identity(key, task))
		return false;
	key->state = runnable ? 0 : state;
	key->flags = runnable ? OFFCPU_F_PREEMPTED : 0;
	if (runnable && !record_preempted)
		key->flags |= OFFCPU_F_DROP_PREEMPTED;
	else if (state_mask && !state_wanted(key->state))
		key->flags |= OFFCPU_F_DROP_STATE;
	return true;
}

static __always_inline __u32 task_state(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return BPF_CORE_READ((struct task_struct___old *)task, state);
}

static __always_inline struct scratch *my_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

/* A wait of DELTA from START has ended (or, for open ones, been cut): sum it. */
static __always_inline void account(struct scratch *s, struct offcpu_key *key, __u64 start, __u64 now)
{
	struct offcpu_counters *c = &s->count;
	__u64 delta = now - start;
	struct offcpu_value *v;
	__u32 zero = 0;
	void *map;

	if (now < start) {
		c->clock_back++;
		delta = 0;
	}
	c->seen++;
	c->seen_ns += delta;
	if (key->flags & OFFCPU_F_DROP_PREEMPTED) {
		c->preempted++;
		c->preempted_ns += delta;
		return;
	}
	if (key->flags & OFFCPU_F_DROP_STATE) {
		c->state++;
		c->state_ns += delta;
		return;
	}
	if (delta < min_ns) {
		c->min++;
		c->min_ns += delta;
		return;
	}
	if (delta > max_ns) {
		c->max++;
		c->max_ns += delta;
		return;
	}
	map = bpf_map_lookup_elem(&agg, &zero);
	v = map ? bpf_map_lookup_elem(map, key) : NULL;
	if (v) {
		v->total_ns += delta;
		v->count++;
		if (delta > v->max_ns)
			v->max_ns = delta;
		v->last_ns = start;
	} else {
		struct offcpu_value first = {
			.total_ns = delta, .count = 1, .max_ns = delta, .first_ns = start, .last_ns = start
		};

		if (!map || bpf_map_update_elem(map, key, &first, BPF_NOEXIST)) {
			c->agg_full++;
			c->agg_full_ns += delta;
			return;
		}
		__sync_fetch_and_add(&inserted, 1);
	}
	c->recorded++;
	c->recorded_ns += delta;
}

static __always_inline void leave(void *ctx, struct task_struct *task, bool preempt, __u32 state, __u64 now)
{
	struct scratch *s = my_scratch();
	struct offcpu_wait *w;
	struct offcpu_key *key;
	__u32 reason;
	long n;

	if (!s)
		return;
	w = bpf_task_storage_get(&waits, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!w) {
		s->count.storage++;
		return;
	}
	/* the last switch of a thread is no wait */
	if (!preempt && (state & (TASK_DEAD | EXIT_DEAD | EXIT_ZOMBIE))) {
		w->start = OFFCPU_ON_CPU;
		return;
	}
	key = &w->key;
	if (!key_init(key, task, preempt || state == TASK_RUNNING, state)) {
		w->start = OFFCPU_ON_CPU;
		return;
	}
	if (!(key->flags & OFFCPU_F_DROP)) {
		if (w->announced != key->exec_id + 1)
			announce(task, w, s, key);
		if (kernel_stacks) {
			n = bpf_get_stack(ctx, s->ev.frames, stack_bytes(), 0);
			key->kernel = stack_id(s, n, KIND_KERNEL, VERDICT_COMPLETE);
		} else {
			key->kernel = no_stack(REASON_NOT_ASKED);
		}
		reason = no_user_reason(task);
		if (!reason) {
			n = bpf_get_stack(ctx, s->ev.frames, stack_bytes(), BPF_F_USER_STACK);
			key->user = stack_id(s, n, KIND_USER, VERDICT_UNVERIFIED);
		} else {
			key->user = no_stack(reason);
		}
	}
	w->start = now;
}

/*
 * A thread that returns, was there when the recording began and was neither
 * seen leaving nor found by initial_waits. It is not on a CPU yet, so its
 * kernel stack stands still and can be taken; its user stack cannot.
 */
static __always_inline void enter_unseen(struct task_struct *task, __u64 now)
{
	struct offcpu_key key = {};
	struct scratch *s = my_scratch();
	long n;

	/* a process that -c, --follow or an exec made a target later waited as none */
	if (!s || use_comms || follow || task->start_boottime > record_start_boot)
		return;
	if (!key_init(&key, task, false, task_state(task)))
		return;
	key.flags |= OFFCPU_F_INITIAL;
	key.user = no_stack(REASON_NOT_SEEN);
	if (kernel_stacks) {
		n = bpf_get_task_stack(task, s->ev.frames, stack_bytes(), 0);
		key.kernel = stack_id(s, n, KIND_KERNEL, VERDICT_COMPLETE);
	} else {
		key.kernel = no_stack(REASON_NOT_ASKED);
	}
	account(s, &key, record_start_ns, now);
}

static __always_inline void enter(struct task_struct *task, __u64 now)
{
	bool armed = phase == OFFCPU_ARMED;
	struct offcpu_wait *w;
	struct offcpu_key *key;
	struct scratch *s;
	__u64 start;

	/* while initial_waits looks around, it must find that this one runs */
	w = bpf_task_storage_get(&waits, task, NULL, armed ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!w) {
		if (!armed)
			enter_unseen(task, now);
		return;
	}
	/* against initial_waits, which goes from UNKNOWN to INITIAL at any time */
	start = __sync_lock_test_and_set(&w->start, OFFCPU_ON_CPU);
	if (armed || start == OFFCPU_ON_CPU || start == OFFCPU_UNKNOWN)
		return;
	s = my_scratch();
	if (!s)
		return;
	key = start == OFFCPU_INITIAL ? &w->initial : &w->key;
	if (start < record_start_ns) {
		start = record_start_ns;
		key->flags |= OFFCPU_F_INITIAL;
	}
	account(s, key, start, now);
}

static __always_inline int on_switch(
	void *ctx, bool preempt, struct task_struct *prev, struct task_struct *next, __u32 state)
{
	bool out, in;
	__u64 now;

	if (phase != OFFCPU_RECORDING && phase != OFFCPU_ARMED)
		return 0;
	out = wanted(prev);
	in = wanted(next);
	if (!out && !in)
		return 0;
	now = bpf_ktime_get_ns();
	if (in)
		enter(next, now);
	if (out)
		leave(ctx, prev, preempt, state, now);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	unsigned int prev_state)
{
	return on_switch(ctx, preempt, prev, next, prev_state);
}

/* Before 5.18 the tracepoint had no prev_state. */
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch_old, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	return on_switch(ctx, preempt, prev, next, task_state(prev));
}

static __always_inline bool comm_matches(struct task_struct *leader)
{
	char name[OFFCPU_COMM_LEN] = {};

	BPF_CORE_READ_STR_INTO(&name, leader, comm);
	for (__u32 i = 0; i < OFFCPU_COMMS_MAX && i < n_comms; i++) {
		bool same = true;

		for (int j = 0; j < OFFCPU_COMM_LEN; j++) {
			if (name[j] != comms[i][j]) {
				same = false;
				break;
			}
			if (!name[j])
				break;
		}
		if (same)
			return true;
	}
	return false;
}

/* A new process inherits its parent's place among the targets, or loses the old owner of its PID. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	if (all_tasks)
		return 0;
	if (use_tids)
		bit_clear(&tids, child->pid);
	if (child->pid != child->tgid)
		return 0;
	if ((follow && bit_get(&tgids, parent->tgid)) || (use_comms && comm_matches(child)))
		bit_set(&tgids, child->tgid);
	else
		bit_clear(&tgids, child->tgid);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (exec_target && our_id(BPF_CORE_READ(task, group_leader)) == exec_target) {
		exec_target = 0;
		bit_set(&tgids, tgid);
	} else if (use_comms && comm_matches(task)) {
		bit_set(&tgids, tgid);
	}
	return 0;
}

/* The new name is not in the task yet. */
SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	char name[OFFCPU_COMM_LEN] = {};

	if (!use_comms || task->pid != task->tgid)
		return 0;
	bpf_probe_read_kernel_str(name, sizeof(name), comm);
	for (__u32 i = 0; i < OFFCPU_COMMS_MAX && i < n_comms; i++) {
		bool same = true;

		for (int j = 0; j < OFFCPU_COMM_LEN; j++) {
			if (name[j] != comms[i][j]) {
				same = false;
				break;
			}
			if (!name[j])
				break;
		}
		if (same)
			bit_set(&tgids, task->tgid);
	}
	return 0;
}

/* Where the recorder stands: read once, before anything else. */
SEC("iter/task")
int find_self(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task, *me;
	struct pid *pid;
	struct upid *up;

	if (ctx->meta->seq == NULL || !task)
		return 0;
	me = (void *)bpf_get_current_task();
	if (task != me)
		return 0;
	pid = BPF_CORE_READ(task, thread_pid);
	if (!pid)
		return 0;
	self_tgid = task->tgid;
	ns_level = BPF_CORE_READ(pid, level);
	up = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
	     ns_level * bpf_core_type_size(struct upid);
	ns_inum = BPF_CORE_READ(up, ns, ns.inum);
	return 0;
}

/* Set the bits of every task that -p, -t or -c asked for. */
SEC("iter/task")
int find_targets(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 id;

	if (!task)
		return 0;
	id = our_id(task);
	if (task->pid == task->tgid &&
		(bpf_map_lookup_elem(&asked_pids, &id) || (use_comms && comm_matches(task))))
		bit_set(&tgids, task->tgid);
	if (use_tids && bpf_map_lookup_elem(&asked_tids, &id))
		bit_set(&tids, task->pid);
	return 0;
}

/*
 * The verifier follows every value that it knows through a loop: the length is
 * kept in map memory, whose contents it does not know, so one pass covers all.
 */
struct walk {
	struct task_struct *task;
	struct scratch *s;
	__u64 fp;
};

static long walk_step(__u32 i, struct walk *w)
{
	__u32 at = i + 1;
	__u64 frame[2];

	if (at > depth || at > OFFCPU_DEPTH_MAX)
		return 1;
	if (bpf_copy_from_user_task(frame, sizeof(frame), (void *)w->fp, w->task, 0))
		return 1;
	w->s->ev.frames[at] = frame[1];
	w->s->ev.len = at + 1;
	w->fp = frame[0];
	return 0;
}

/* The frame-pointer walk of another task's user stack, as the kernel does it for current. */
static __always_inline long walk_user(struct task_struct *task, struct scratch *s)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	struct walk w = { .task = task, .s = s, .fp = BPF_CORE_READ(regs, bp) };

	s->ev.frames[0] = BPF_CORE_READ(regs, ip);
	s->ev.len = 1;
	bpf_loop(OFFCPU_DEPTH_MAX, walk_step, &w, 0);
	return s->ev.len * 8;
}

/* Run while armed: the stacks of the threads that wait already. */
SEC("iter.s/task")
int initial_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct offcpu_wait *w;
	struct scratch *s;
	__u32 zero = 0, reason, state;
	bool runnable;
	long n;

	if (!task || !wanted(task) || task->on_cpu)
		return 0;
	s = bpf_map_lookup_elem(&iter_scratch, &zero);
	w = bpf_task_storage_get(&waits, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s)
		return 0;
	if (!w) {
		s->count.storage++;
		return 0;
	}
	if (w->start != OFFCPU_UNKNOWN)
		return 0;
	state = task_state(task);
	if (state & (TASK_DEAD | EXIT_DEAD | EXIT_ZOMBIE))
		return 0;
	runnable = state == TASK_RUNNING;
	if (!key_init(&w->initial, task, runnable, state))
		return 0;
	if (!(w->initial.flags & OFFCPU_F_DROP)) {
		announce(task, w, s, &w->initial);
		if (kernel_stacks) {
			n = bpf_get_task_stack(task, s->ev.frames, stack_bytes(), 0);
			w->initial.kernel = stack_id(s, n, KIND_KERNEL, VERDICT_COMPLETE);
		} else {
			w->initial.kernel = no_stack(REASON_NOT_ASKED);
		}
		reason = no_user_reason(task);
		if (!reason)
			w->initial.user = stack_id(s, walk_user(task, s), KIND_USER, VERDICT_UNVERIFIED);
		else
			w->initial.user = no_stack(reason);
	}
	/*
	 * Still the wait that was looked at? A thread that ran since has left
	 * UNKNOWN in enter() or leave(); the exchange loses then.
	 */
	__sync_val_compare_and_swap(&w->start, OFFCPU_UNKNOWN, OFFCPU_INITIAL);
	return 0;
}

/* Waits that are still open after the recording was frozen. */
SEC("iter/task")
int open_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct offcpu_ev_open ev = {};
	struct offcpu_wait *w;

	if (!task)
		return 0;
	w = bpf_task_storage_get(&waits, task, NULL, 0);
	if (!w || w->start == OFFCPU_UNKNOWN || w->start == OFFCPU_ON_CPU)
		return 0;
	ev.type = OFFCPU_EV_OPEN;
	ev.start = w->start;
	ev.key = w->start == OFFCPU_INITIAL ? w->initial : w->key;
	if (ev.start < record_start_ns) {
		ev.start = record_start_ns;
		ev.key.flags |= OFFCPU_F_INITIAL;
	}
	bpf_seq_write(ctx->meta->seq, &ev, sizeof(ev));
	return 0;
}
