/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the wait of a thread is kept, and what distinguishes the images of a
 * process. Part of offcpu.bpf.c; see task.bpf.h for the two variants.
 */
#ifndef STACKTOOLS_OFFCPU_WAITS_BPF_H
#define STACKTOOLS_OFFCPU_WAITS_BPF_H

#ifndef OFFCPU_RAW

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct offcpu_wait);
} waits SEC(".maps");

/* The wait of TASK; with MAKE, create it if it does not exist. NULL: no wait, or no memory. */
static __always_inline struct offcpu_wait *wait_get(struct task_struct *task, bool make)
{
	return bpf_task_storage_get(&waits, task, NULL, make ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
}

/* Waits before and after it have different keys, and the first one announces the new name. */
EVENT("task_rename")
int BPF_PROG(count_rename, struct task_struct *task)
{
	struct offcpu_wait *w = wait_get(task, false);

	if (w) {
		w->names++;
		w->announced = 0;
	}
	return 0;
}

/* An exchange, because `waiting` may change UNKNOWN to INITIAL at any time. */
static __always_inline __u64 start_replace(struct offcpu_wait *w, __u64 start)
{
	return __sync_lock_test_and_set(&w->start, start);
}

/* TASK, whose wait is W, will not return. The kernel frees the storage with the task. */
static __always_inline void wait_drop(struct task_struct *task, struct offcpu_wait *w)
{
	w->start = OFFCPU_ON_CPU;
}

/* How often the process of TASK, with ID TGID, has replaced its image. */
static __always_inline __u32 image_execs(struct task_struct *task, __u32 tgid)
{
	return task->self_exec_id;
}

/* The same for a thread whose KEY may come from an earlier image. */
static __always_inline __u32 image_execs_now(struct task_struct *task, const struct offcpu_key *key)
{
	return task->self_exec_id;
}

/* The same for a new process. */
static __always_inline __u32 image_execs_new(struct task_struct *child)
{
	return child->self_exec_id;
}

static __always_inline __u64 image_start(struct task_struct *leader)
{
	return BPF_CORE_READ(leader, start_boottime);
}

static __always_inline __u32 state_now(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return ((struct task_struct___state *)task)->state;
}

/* Does TASK, which leaves its CPU and could run on, have to wait for the quota of its cgroup? */
static __always_inline bool is_throttled(struct task_struct *task)
{
	struct task_struct___throttled *since_6_18 = (void *)task;

	if (bpf_core_field_exists(since_6_18->throttled))
		return since_6_18->throttled;
	if (!bpf_core_field_exists(task->se.cfs_rq) ||
		!bpf_core_field_exists(task->se.cfs_rq->throttle_count))
		return false;
	return task->prio >= MAX_RT_PRIO && task->se.cfs_rq->throttle_count;
}

/* Are queues throttled with all threads on them, also those that wait for their CPU? (Linux 5.19 to 6.17) */
static __always_inline bool queues_are_throttled(void)
{
	return !bpf_core_field_exists(struct task_struct___throttled, throttled) &&
	       bpf_core_field_exists(struct cfs_rq, throttled_clock_pelt_time);
}

/* TASK, whose wait is W, has lost its CPU. May its queue be throttled meanwhile? If it has been before. */
static __always_inline bool may_be_throttled(struct task_struct *task, struct offcpu_wait *w)
{
	w->queue = 0;
	if (!queues_are_throttled() || !bpf_core_field_exists(task->se.cfs_rq) || task->prio < MAX_RT_PRIO)
		return false;
	w->queue_throttled = task->se.cfs_rq->throttled_clock_pelt_time;
	if (w->queue_throttled)
		w->queue = (__u64)task->se.cfs_rq;
	return w->queue;
}

/* Has it been? */
static __always_inline bool was_throttled(const struct offcpu_wait *w)
{
	struct cfs_rq *queue = (void *)w->queue;

	return queues_are_throttled() &&
	       (BPF_CORE_READ(queue, throttle_count) ||
		       BPF_CORE_READ(queue, throttled_clock_pelt_time) != w->queue_throttled);
}

static __always_inline __u64 run_delay(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info) ? task->sched_info.run_delay : 0;
}

static __always_inline bool queue_known(struct task_struct *task)
{
	return bpf_core_field_exists(task->se.cfs_rq) && bpf_core_field_exists(task->se.cfs_rq->rq);
}

/*
 * The clock of this CPU's run queue, in a program at an event. By itself: for each pointer that such a
 * program reads, the verifier searches all types by name, on each path to it, which takes a millisecond
 * (6.18).
 */
__noinline __u64 this_queue_clock(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return queue_known(task) ? task->se.cfs_rq->rq->clock : 0;
}

/* The clock of the run queue of TASK; 0 = not known. HERE: the queue is this CPU's. */
static __always_inline __u64 queue_clock(struct task_struct *task, bool here)
{
	if (here)
		return this_queue_clock();
	return queue_known(task) ? BPF_CORE_READ(task, se.cfs_rq, rq, clock) : 0;
}

/*
 * For how long TASK, which is about to run or whose wait is cut here, has been on a run queue since its
 * run_delay was BEFORE. The scheduler adds to that when the thread runs or moves to another queue, after this
 * tracepoint: the time on the present queue is added here, by the same clock. HERE as in queue_clock().
 */
static __always_inline __u64 runnable_ns(struct task_struct *task, __u64 before, bool here)
{
	__u64 queued, clock, ns;

	if (!bpf_core_field_exists(task->sched_info))
		return OFFCPU_UNKNOWN_NS;
	ns = task->sched_info.run_delay - before;
	queued = task->sched_info.last_queued;
	if (!queued)
		return ns;
	clock = queue_clock(task, here);
	if (!clock) /* also if a pointer on the way could not be read */
		return OFFCPU_UNKNOWN_NS;
	return clock > queued ? ns + clock - queued : ns;
}

#endif

/*
 * For how long TASK, which leaves this CPU, has been on it; OFFCPU_UNKNOWN_NS = not known. Every class of
 * scheduling keeps when a thread got its CPU in sched_info. What a thread had run before is kept by the fair
 * class alone.
 */
static __always_inline __u64 ran_ns(struct task_struct *task)
{
#ifndef OFFCPU_RAW
	__u64 clock;

	if (bpf_core_field_exists(task->sched_info.last_arrival)) {
		clock = queue_clock(task, true);
		if (clock && task->sched_info.last_arrival && clock >= task->sched_info.last_arrival)
			return clock - task->sched_info.last_arrival;
	}
	if (task->prio < MAX_RT_PRIO ||
		(task->policy != SCHED_NORMAL && task->policy != SCHED_BATCH && task->policy != SCHED_IDLE))
		return OFFCPU_UNKNOWN_NS;
#endif
	if (!bpf_core_field_exists(task->se.prev_sum_exec_runtime))
		return OFFCPU_UNKNOWN_NS;
	return task_get(task, se.sum_exec_runtime) - task_get(task, se.prev_sum_exec_runtime);
}

#ifdef OFFCPU_RAW

/* Set by user space. In separate sections: the others match those of offcpu.bpf.c. */
const volatile __u32 regs_from_stack SEC(
	".rodata.raw") = 0; /* bytes from the kernel stack's lowest byte to pt_regs */

/* By set_tid(). Preallocated, because it is filled inside the scheduler. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_wait);
} waits SEC(".maps");

/*
 * How often a process was seen replacing its image, by our_id(): the recorder
 * can read this map, but not a task. Missing = never.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} execs SEC(".maps");

const struct offcpu_wait fresh_wait SEC(".rodata.raw") = {};

/* No iterator runs at the same time as the switch program. */
static __always_inline __u64 start_replace(struct offcpu_wait *w, __u64 start)
{
	__u64 old = w->start;

	w->start = start;
	return old;
}

static __always_inline struct offcpu_wait *wait_of_id(__u32 id)
{
	return bpf_map_lookup_elem(&waits, &id);
}

static __always_inline struct offcpu_wait *wait_make_id(__u32 id)
{
	struct offcpu_wait *w = wait_of_id(id);

	if (w)
		return w;
	bpf_map_update_elem(&waits, &id, &fresh_wait, BPF_NOEXIST);
	return wait_of_id(id);
}

static __always_inline struct offcpu_wait *wait_get(struct task_struct *task, bool make)
{
	__u32 id = set_tid(task);

	return make ? wait_make_id(id) : wait_of_id(id);
}

static __always_inline void wait_drop(struct task_struct *task, struct offcpu_wait *w)
{
	__u32 id = set_tid(task);

	bpf_map_delete_elem(&waits, &id);
}

static __always_inline __u32 image_execs(struct task_struct *task, __u32 tgid)
{
	__u32 *n = bpf_map_lookup_elem(&execs, &tgid);

	return n ? *n : 0;
}

/* image_replaced() clears the ID in the key */
static __always_inline __u32 image_execs_now(struct task_struct *task, const struct offcpu_key *key)
{
	return key->exec_id;
}

static __always_inline __u32 image_execs_new(struct task_struct *child)
{
	return 0;
}

/* Not known: the recorder does not know where these are in a task and a run queue. */
static __always_inline bool is_throttled(struct task_struct *task)
{
	return false;
}

static __always_inline bool may_be_throttled(struct task_struct *task, struct offcpu_wait *w)
{
	return false;
}

static __always_inline bool was_throttled(const struct offcpu_wait *w)
{
	return false;
}

static __always_inline __u64 run_delay(struct task_struct *task)
{
	return 0;
}

static __always_inline __u64 runnable_ns(struct task_struct *task, __u64 before, bool here)
{
	return OFFCPU_UNKNOWN_NS;
}

#define TICK_NS 10000000ULL /* USER_HZ: user space must compute the same as from /proc/PID/stat */

static __always_inline __u64 image_start(struct task_struct *leader)
{
	return BPF_CORE_READ(leader, start_boottime) / TICK_NS * TICK_NS;
}

static __always_inline __u32 state_now(struct task_struct *task)
{
	return bpf_core_field_exists(task->__state) ? task_get(task, __state) : TASK_RUNNING;
}

/*
 * The process of TASK replaces its image: from here on its mappings and future
 * registers belong to another program. TASK is its only thread.
 */
static __always_inline void image_replaced(struct task_struct *task)
{
	__u32 tgid = our_id(BPF_CORE_READ(task, group_leader)), one = 1, *n;
	struct offcpu_wait *w = wait_get(task, false);

	if (!tgid)
		return;
	n = bpf_map_lookup_elem(&execs, &tgid);
	if (n)
		++*n;
	else
		bpf_map_update_elem(&execs, &tgid, &one, BPF_ANY);
	if (w)
		w->key.tid = 0;
}

/*
 * Is this rename part of an exec? Then the new address space exists but is not
 * filled in yet; nothing but exec renames at that time.
 */
static __always_inline bool rename_is_exec(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	return (__u64)task == bpf_get_current_task() && mm && !BPF_CORE_READ(mm, start_code);
}

/* A new thread or process has the ID of an earlier one. */
static __always_inline void id_reused(__u32 tid, __u32 tgid)
{
	bpf_map_delete_elem(&waits, &tid);
	if (tgid)
		bpf_map_delete_elem(&execs, &tgid);
}

#endif

#endif
