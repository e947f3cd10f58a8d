/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which tasks are recorded, by which IDs the recorder knows them, and how the
 * set follows fork, exec and renames. Part of offcpu.bpf.c.
 */
#ifndef STACKTOOLS_OFFCPU_TARGETS_BPF_H
#define STACKTOOLS_OFFCPU_TARGETS_BPF_H

#include "offcpu_cgroup.bpf.h"
#include "offcpu_owner.bpf.h"

const volatile bool all_tasks;
const volatile bool single; /* one process is the only target: hot.single_tgid; no bit is looked up */
const volatile bool use_tids;
const volatile bool use_comms;
const volatile bool with_kthreads;
const volatile bool follow;
/*
 * Variables have an initializer, because only then they are in source order,
 * and in the same places in offcpu-raw.bpf.c: see lib/record/bpf_raw.c.
 *
 * `hot` is read at every switch of every task, so it is in one cache line. Its
 * IDs are global ones.
 */
struct {
	__u32 phase; /* enum offcpu_phase */
	__u32 single_tgid; /* the one process that is recorded */
	__u32 self_tgid; /* the recorder, never recorded, */
	__u32 worker_tgid; /* nor its worker, which makes unwind tables, */
	__u32 broker_tgid; /* nor its broker, which opens files, */
	__u32 store_tgid; /* nor the process that stores unwind tables */
} hot __attribute__((aligned(64))) = {};

__u32 ns_level = 0; /* of the recorder's PID namespace; 0 = the initial one */
__u32 ns_inum = 0;
__u32 worker_id = 0, broker_id = 0,
      store_id = 0; /* IDs of these in the recorder's namespace, for find_self */
__u32 held = 0; /* process (recorder's ID) stopped at exec until it can be recorded: its waits are ignored */
__u32 exec_target = 0; /* a process (ID in the recorder's namespace) that becomes a target when it execs */
char comms[OFFCPU_COMMS_MAX][OFFCPU_COMM_LEN] = {};
__u32 n_comms = 0;
__u8 comm_seen[OFFCPU_COMMS_MAX] = {}; /* of `comms`: a process had that name */

/* Bit sets over global IDs, sized to pid_max: exact, and a look-up is one load. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u64);
} tgids SEC(".maps"), tids SEC(".maps");

/* The -p and -t arguments, as IDs of the recorder's namespace, for find_targets. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} target_pids SEC(".maps"), target_tids SEC(".maps");

static __always_inline bool bit_get(void *map, __u32 id)
{
	__u32 word = id >> 6;
	__u64 *bits = bpf_map_lookup_elem(map, &word);

	return bits && (*bits >> (id & 63) & 1);
}

/*
 * Before Linux 5.12, where only mode raw runs, addition is the only atomic
 * operation. It is exact as long as no two CPUs change the same bit at the same
 * time. Forks, execs and renames of a process follow each other; only two
 * threads that rename their process at the same time could conflict.
 */
static __always_inline void bit_set(void *map, __u32 id)
{
	__u32 word = id >> 6;
	__u64 *bits = bpf_map_lookup_elem(map, &word), bit = 1ULL << (id & 63);

	if (!bits)
		return;
#ifdef OFFCPU_RAW
	if (!(*bits & bit))
		__sync_fetch_and_add(bits, bit);
#else
	__sync_fetch_and_or(bits, bit);
#endif
}

static __always_inline void bit_clear(void *map, __u32 id)
{
	__u32 word = id >> 6;
	__u64 *bits = bpf_map_lookup_elem(map, &word), bit = 1ULL << (id & 63);

	if (!bits)
		return;
#ifdef OFFCPU_RAW
	if (*bits & bit)
		__sync_fetch_and_add(bits, -bit);
#else
	__sync_fetch_and_and(bits, ~bit);
#endif
}

/* The ID of TASK in the recorder's PID namespace, or 0 if it is not visible there. */
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

/* The ID of TASK in its own, innermost PID namespace. */
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

/*
 * The IDs by which the sets know a task: global ones, or the recorder's
 * (OFFCPU_RAW), because there no iterator can translate the requested IDs.
 */
static __always_inline __u32 set_tid(struct task_struct *task)
{
#ifdef OFFCPU_RAW
	if (ns_level)
		return our_id(task);
#endif
	return task_get(task, pid);
}

static __always_inline __u32 set_tgid(struct task_struct *task)
{
#ifdef OFFCPU_RAW
	if (ns_level)
		return our_id(BPF_CORE_READ(task, group_leader));
#endif
	return task_get(task, tgid);
}

static __always_inline bool is_leader(struct task_struct *task)
{
	return task_get(task, pid) == task_get(task, tgid);
}

static __always_inline bool is_target(struct task_struct *task)
{
	__u32 tgid;

	if (all_tasks) {
		if (!set_tid(task) || (!with_kthreads && task_get(task, flags) & PF_KTHREAD))
			return false;
		tgid = set_tgid(task);
		return tgid != hot.self_tgid && tgid != hot.worker_tgid && tgid != hot.broker_tgid &&
		       tgid != hot.store_tgid;
	}
	if (single)
		return set_tgid(task) == hot.single_tgid;
	if (bit_get(&tgids, set_tgid(task)))
		return true;
	return use_tids && bit_get(&tids, set_tid(task));
}

static __always_inline bool wanted(struct task_struct *task)
{
	return (!use_cgroup || in_cgroup(task)) && is_target(task);
}

/* set_tgid() of TASK, which is current. */
static __always_inline __u32 current_set_tgid(struct task_struct *task)
{
#ifdef OFFCPU_RAW
	if (!ns_level)
		return bpf_get_current_pid_tgid() >> 32;
#endif
	return set_tgid(task);
}

/* For two tasks, the first of them current. Every switch on the system calls this: use few loads. */
static __always_inline bool either_wanted(struct task_struct *a, struct task_struct *b)
{
	__u32 tgid;

	if (single) {
		tgid = hot.single_tgid;
		return current_set_tgid(a) == tgid || set_tgid(b) == tgid;
	}
	/* record_switch checks more closely */
	if (use_cgroup && all_tasks)
		return either_in_cgroup(a, b);
	return wanted(a) || wanted(b);
}

/* Is NAME one of the -c names? */
static __always_inline bool name_requested(const char *name)
{
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
		if (same) {
			comm_seen[i] = 1;
			return true;
		}
	}
	return false;
}

static __always_inline bool comm_matches(struct task_struct *leader)
{
	char name[OFFCPU_COMM_LEN] = {};

	BPF_CORE_READ_STR_INTO(&name, leader, comm);
	return name_requested(name);
}

#define FOLLOW_DEPTH 16

/*
 * Do children of TASK become targets? A thread of -t has those that it makes itself.
 * An ancestor may be a target and TASK not yet: it ran already when the recording
 * began, and user space is still looking for it. Not what the recorder itself starts.
 */
static __always_inline bool is_followed(struct task_struct *task)
{
#ifdef OFFCPU_RAW
	return bit_get(&tgids, set_tgid(task)) || (use_tids && bit_get(&tids, set_tid(task)));
#else
	/* no loop: the verifier of Linux 6.1 takes the one that clang makes of it for endless */
#pragma unroll
	for (int i = 0; i < FOLLOW_DEPTH; i++) {
		__u32 tgid = BPF_CORE_READ(task, tgid);

		if (bit_get(&tgids, tgid) || (use_tids && bit_get(&tids, BPF_CORE_READ(task, pid))))
			return true;
		if (tgid <= 1 || tgid == hot.self_tgid)
			return false;
		task = BPF_CORE_READ((struct task_struct___parent *)task, real_parent);
		if (!task)
			return false;
	}
	return false;
#endif
}

/*
 * A new process becomes a target if its parent is one (--follow) or by its
 * name; otherwise clear the bit of the PID's previous owner.
 */
EVENT("sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	if (use_cgroup)
		learn_cgroup(cgroup_of(child));
	if (all_tasks)
		return 0;
	if (use_tids)
		bit_clear(&tids, set_tid(child));
	if (!is_leader(child))
		return 0;
	if ((follow && is_followed(parent)) || (use_comms && comm_matches(child)))
		bit_set(&tgids, set_tgid(child));
	else
		bit_clear(&tgids, set_tgid(child));
	return 0;
}

static __always_inline void target_exec(struct task_struct *task)
{
	__u32 tgid = set_tgid(task);

	if (exec_target && our_id(BPF_CORE_READ(task, group_leader)) == exec_target) {
		exec_target = 0;
		bit_set(&tgids, tgid);
	} else if (use_comms && comm_matches(task)) {
		bit_set(&tgids, tgid);
	}
}

EVENT("sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	target_exec(task);
	return 0;
}

#ifndef OFFCPU_RAW

SEC("kern_tp/cgroup_rmdir")
int BPF_PROG(on_rmdir, struct cgroup *cgrp, const char *path)
{
	if ((__u64)cgrp == cgroup_at.address)
		cgroup_at.address = 0;
	return 0;
}

#endif

/* The task does not have the new name yet. */
EVENT("task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	char name[OFFCPU_COMM_LEN] = {};

	if (!use_comms || !is_leader(task))
		return 0;
	bpf_probe_read_kernel_str(name, sizeof(name), comm);
	if (name_requested(name))
		bit_set(&tgids, set_tgid(task));
	return 0;
}

#ifndef OFFCPU_RAW

/*
 * Find the IDs of the recorder before anything else; later, find its other
 * processes whenever they change.
 */
SEC("kern_iter/task")
int find_self(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task, *me;
	struct pid *pid;
	struct upid *up;

	if (ctx->meta->seq == NULL || !task)
		return 0;
	me = (void *)bpf_get_current_task();
	if (worker_id && our_id(task) == worker_id)
		hot.worker_tgid = task->tgid;
	if (broker_id && our_id(task) == broker_id)
		hot.broker_tgid = task->tgid;
	if (store_id && our_id(task) == store_id)
		hot.store_tgid = task->tgid;
	if (task != me)
		return 0;
	pid = BPF_CORE_READ(task, thread_pid);
	if (!pid)
		return 0;
	hot.self_tgid = task->tgid;
	ns_level = BPF_CORE_READ(pid, level);
	up = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
	     ns_level * bpf_core_type_size(struct upid);
	ns_inum = BPF_CORE_READ(up, ns, ns.inum);
	return 0;
}

/* Find the cgroup, if it contains a task. */
SEC("kern_iter/task")
int find_cgroup(struct bpf_iter__task *ctx)
{
	if (ctx->task)
		learn_cgroup(cgroup_of(ctx->task));
	return 0;
}

/* Set the bits of every task that -p, -t or -c requests. */
SEC("kern_iter/task")
int find_targets(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 id;

	if (!task)
		return 0;
	id = our_id(task);
	/* the name first: it notes that there is one */
	if (task->pid == task->tgid &&
		((use_comms && comm_matches(task)) || bpf_map_lookup_elem(&target_pids, &id))) {
		hot.single_tgid = task->tgid;
		bit_set(&tgids, task->tgid);
	}
	if (use_tids && bpf_map_lookup_elem(&target_tids, &id))
		bit_set(&tids, task->pid);
	return 0;
}

#endif

#endif
