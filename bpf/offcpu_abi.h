/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What bpf/offcpu.bpf.c and lib/record/bpf.c share: the key of a wait, the
 * values summed under it, the events of the ring buffer and the counters. Both
 * compilers check the layout.
 *
 * All IDs belong to the recorder's PID namespace, except for names with ns_:
 * these are IDs in the innermost namespace of the task itself. Times are
 * CLOCK_MONOTONIC nanoseconds.
 */
#ifndef STACKTOOLS_OFFCPU_ABI_H
#define STACKTOOLS_OFFCPU_ABI_H

#include <linux/types.h>

#include "hotspot_abi.h"
#include "runtime_abi.h"
#include "unwind_abi.h"

#define OFFCPU_DEPTH_MAX 512

/*
 * Numbers in the code of programs, in place of which user space writes values before it loads them:
 * offcpu_others.bpf.h. One that is still there means nothing.
 */
#define OFFCPU_CODE_WHO 0x57ac6b0100000001 /* enum offcpu_who */
#define OFFCPU_CODE_ID 0x57ac6b0100000002 /* of a process; address of a cgroup */
#define OFFCPU_CODE_LEVEL 0x57ac6b0100000003 /* of a cgroup */
#define OFFCPU_CODE_SUBSYS 0x57ac6b0100000004 /* of a cgroup v1: enum cgroup_subsys_id + 1; 0 = v2 */

enum offcpu_who { OFFCPU_WHO_PROCESS = 1, OFFCPU_WHO_CGROUP, OFFCPU_WHO_CGROUP_KTHREADS };

/*
 * A kernel stack taken at the tracepoint begins with the frames of the tracer
 * itself: this many extra frames are taken, and user space removes them.
 */
#define OFFCPU_OWN_FRAMES 12
#define OFFCPU_SCRIPTS_MAX OFFCPU_DEPTH_MAX /* script frames of a stack, two words each */
#define OFFCPU_FRAMES_MAX                                                                                    \
	((OFFCPU_DEPTH_MAX + OFFCPU_OWN_FRAMES + 1 + 2 * OFFCPU_SCRIPTS_MAX + 7) / 8 *                       \
		8) /* hashed eight at a time */
#define OFFCPU_COMM_LEN 16
#define OFFCPU_COMMS_MAX 16 /* for -c */
#define OFFCPU_WAKERS_MAX 8 /* steps of a chain of wakers */

/* The values of offcpu_wait.start that are not a time. */
enum offcpu_start {
	OFFCPU_UNKNOWN = 0, /* not seen yet (runs or waits since before the recording), or not recorded */
	OFFCPU_ON_CPU = 1,
	OFFCPU_INITIAL = 2, /* waiting since before the recording, stacks in `initial` */
};

/*
 * Armed: waits are taken with their stacks as they begin, the `waiting`
 * iterator finds those that began before, and none is counted yet. So every
 * wait in progress is known when the recording begins.
 */
enum offcpu_phase { OFFCPU_IDLE, OFFCPU_ARMED, OFFCPU_RECORDING, OFFCPU_FROZEN };

/* What the iterator writes: the storage of a thread, struct offcpu_wait, struct offcpu_woken; or struct
   offcpu_ev_life, of which there may be another later, or not; or nothing, but sends the waits that were cut
   when their threads left the cgroup. */
enum offcpu_storage {
	OFFCPU_STORAGE_WAITS,
	OFFCPU_STORAGE_WAKERS,
	OFFCPU_STORAGE_LIVES_SO_FAR,
	OFFCPU_STORAGE_LIVES,
	OFFCPU_STORAGE_CUT
};

/* The values of offcpu_wait.life_from that are not a time. */
enum offcpu_life_from {
	OFFCPU_LIFE_BORN = 0, /* with the thread itself, if the recording had begun */
	OFFCPU_LIFE_FOUND = 1, /* with the recording */
	OFFCPU_LIFE_REPORTED = 2, /* it was reported */
};

/*
 * Identifies a stack: 128 bits of a keyed hash over its frames. If hi == 0,
 * there is no stack, and lo is OFFCPU_FAILED(reason, errno).
 */
struct offcpu_stack_id {
	__u64 hi, lo;
};

#define OFFCPU_FAILED(reason, error) ((__u64)(reason) << 32 | (__u32)(error))

/* offcpu_key.flags: the values of enum cap_sample_flags, and why a wait is not recorded */
#define OFFCPU_F_OPEN 1
#define OFFCPU_F_INITIAL 2
#define OFFCPU_F_PREEMPTED 4
#define OFFCPU_F_ON_CPU 8 /* a sample of a thread that ran */
#define OFFCPU_F_THROTTLED 16
#define OFFCPU_F_TIMED 32
#define OFFCPU_F_NO_DESCRIPTORS 64
#define OFFCPU_F_DROP_PREEMPTED 0x100 /* --preempted was not given */
#define OFFCPU_F_DROP_STATE 0x200 /* excluded by --state */
#define OFFCPU_F_DROP (OFFCPU_F_DROP_PREEMPTED | OFFCPU_F_DROP_STATE)

struct offcpu_key {
	__u32 tgid, tid;
	__u64 start_boot_ns; /* of the thread group leader, CLOCK_BOOTTIME */
	__u32 exec_id; /* how often the process has replaced its image */
	__u32 state; /* prev_state bits */
	struct offcpu_stack_id kernel, user;
	__u32 flags;
	__u32 name; /* how often the thread had been renamed when the wait began; in mode raw 0 */
	/* who ended the wait (struct offcpu_ev_waker); hi == 0: no waker is known. Without --wakers it is not
	   part of the keys of maps: these have OFFCPU_KEY_BARE bytes */
	struct offcpu_stack_id waker;
};

#define OFFCPU_KEY_BARE __builtin_offsetof(struct offcpu_key, waker)

struct offcpu_value {
	__u64 total_ns, count, max_ns;
	__u64 first_ns, last_ns; /* when the first and last of these waits began */
	__u64 runnable_ns; /* of total_ns: on a run queue. Of `split` waits; not known of the others */
	__u64 split;
};

/* A thread's task storage. */
struct offcpu_wait {
	__u64 start; /* enum offcpu_start, or when the wait of `key` began */
	__u32 announced; /* exec_id + 1 of the last OFFCPU_EV_THREAD sent */
	__u32 unsent; /* a stack could not be sent: bit 0 = of the last wait, bit 1 = of this one */
	__u32 requested; /* exec_id + 1 of the last OFFCPU_EV_IMAGE sent */
	__u32 pending; /* the user stack of this wait needs an unwind table that has not come yet */
	__u32 snapshots, snapshots_window; /* taken of this thread, and in which time window */
	/*
	 * The user stack of the wait that began at late_start, walked after the
	 * table had come, while the thread was still waiting.
	 */
	__u64 late_start;
	struct offcpu_stack_id late;
	/* the thread's sched_info.run_delay when the wait of `key` began, and that of `initial` was found */
	__u64 run_delay, initial_run_delay;
	/* the run queue of a thread that lost its CPU, if that was throttled before, and for how long */
	__u64 queue, queue_throttled;
	/* --sample-stacks: where the thread was when the stacks of `key` were taken, and for how many more
	   waits at that place they stand */
	__u64 place_pc, place_sp, place_ns;
	__u32 place_call; /* number of the system call */
	__u32 place_state;
	__u32 keep;
	__u32 names; /* how often the thread was renamed */
	struct offcpu_key key;
	struct offcpu_key initial;
	/* since when the thread is in the recording, a time or enum offcpu_life_from; what it had run then,
	   or when its run queue's clock was life_ran_at, if it ran on (0 = it did not); its run_delay */
	__u64 life_from, life_ran, life_ran_at, life_queued;
};

/* A thread's second task storage: who woke it last. */
struct offcpu_woken {
	struct offcpu_stack_id by[OFFCPU_WAKERS_MAX]; /* the chains of 1, 2 ... wakers; hi == 0: not sent */
	struct offcpu_stack_id kernel, user; /* the stacks of the first of them; hi == 0: not sent */
	__u64 time_ns; /* when; 0 = a wait has ended by it */
	__u16 early; /* the thread had not left the CPU yet */
	__u16 interrupt; /* the waker is one */
	__u32 steps; /* of a thread that is not a target: how many wakers the threads want that it wakes */
};

enum offcpu_event_type {
	OFFCPU_EV_STACK = 1,
	OFFCPU_EV_THREAD = 2,
	OFFCPU_EV_OPEN = 3,
	OFFCPU_EV_IMAGE = 4,
	OFFCPU_EV_SNAPSHOT = 5,
	OFFCPU_EV_FORK = 6, /* struct offcpu_ev_image */
	OFFCPU_EV_MAPPING = 7, /* struct offcpu_ev_image: the process maps something */
	OFFCPU_EV_CODE = 8, /* struct offcpu_ev_code */
	OFFCPU_EV_METHOD = 9, /* struct offcpu_ev_method */
	OFFCPU_EV_INLINED = 10, /* struct offcpu_ev_inlined */
	OFFCPU_EV_WAKER = 11,
	OFFCPU_EV_WAIT = 12,
	OFFCPU_EV_LIFE = 13,
};

/*
 * In a frame of a user stack other than the first: an exact PC, not a return
 * address. It was interrupted, or is where a signal handler returns to.
 */
#define OFFCPU_EXACT (1ULL << 63)

/* offcpu_ev_stack.script_reason of a kernel stack that does not begin with frames of the tracer; and of one
   that was taken at a wake-up */
#define OFFCPU_NOT_TRACED 255
#define OFFCPU_WAKING 254

/* A stack seen for the first time, or sent again: user space keeps the first copy. */
struct offcpu_ev_stack {
	__u32 type;
	__u8 kind; /* enum cap_stack_kind */
	__u8 verdict; /* enum cap_verdict */
	__u16 len; /* frames */
	struct offcpu_stack_id id;
	__u64 stop_pc; /* for VERDICT_STOPPED: where the walk stopped */
	__u32 reason; /* enum cap_reason */
	__u16 scripts; /* script frames after the native ones, two words each: runtime_abi.h */
	__u8 runtime; /* number of the interpreter's file; 0 = none */
	__u8 script_reason; /* enum script_reason */
	__u64 frames[OFFCPU_FRAMES_MAX];
};

/* A thread or process image seen for the first time, or a thread with another name. */
struct offcpu_ev_thread {
	__u32 type;
	__u32 task_flags; /* PF_* */
	__u32 tgid, tid;
	__u32 ns_tgid, ns_tid;
	__u64 start_boot_ns;
	__u64 time_ns; /* it has this name at this time; 0: another name would be reported without a time, too
			*/
	__u32 exec_id;
	__u32 pad;
	char comm[OFFCPU_COMM_LEN];
	char leader_comm[OFFCPU_COMM_LEN];
};

/* offcpu_waker.flags: the values of enum cap_waker_flags */
#define OFFCPU_WAKER_INTERRUPT 1 /* not a thread: an interrupt, such as that of a timer */
#define OFFCPU_WAKER_HIDDEN 2 /* a thread that the recorder may not see, or had no memory for */

struct offcpu_waker {
	__u32 tgid, tid;
	__u64 start_boot_ns;
	__u32 exec_id;
	__u32 flags;
	struct offcpu_stack_id kernel, user;
	struct offcpu_stack_id next; /* who had woken the waker; hi == 0: not known */
};

/* A waker seen for the first time, or sent again. */
struct offcpu_ev_waker {
	__u32 type;
	__u32 pad;
	__u64 time_ns; /* of this wake-up */
	struct offcpu_stack_id id;
	struct offcpu_waker waker;
};

/*
 * A process image that has no unwind tables yet: it waits, or it has just
 * begun. Or a new process: its image is the one of its parent at that time.
 */
struct offcpu_ev_image {
	__u32 type;
	__u32 tgid;
	__u64 start_boot_ns;
	__u32 exec_id;
	union {
		__u32 parent; /* for OFFCPU_EV_FORK */
		__u32 is_target; /* from find_images: the process is recorded */
	};
	__u64 time_ns; /* for OFFCPU_EV_FORK and OFFCPU_EV_MAPPING */
};

#define OFFCPU_SNAPSHOT_BYTES 16384
#define OFFCPU_SNAPSHOT_PIECE 1024
/* words of the architecture's struct pt_regs */
#if defined(UNWIND_ARM64)
#define OFFCPU_SNAPSHOT_REGS 36 /* without what follows the number of the system call */
#else
#define OFFCPU_SNAPSHOT_REGS 21
#endif

/*
 * A user stack that could not be walked at the switch because user space had
 * not published a mapping or a table yet: registers and stack memory, to be
 * walked when these are known. The wait has the stack ID, which no other wait
 * ever has. If the snapshot cannot be walked either, ID stands for the stack
 * WALKED.
 */
struct offcpu_ev_snapshot {
	__u32 type;
	__u32 bytes; /* of `stack`, a multiple of OFFCPU_SNAPSHOT_PIECE */
	struct offcpu_stack_id id, walked;
	__u64 time_ns; /* of the switch */
	__u64 start_boot_ns;
	__u32 tgid, exec_id;
	__u64 from; /* address of the first byte of `stack` */
	__u64 bottom; /* where the main thread's stack begins */
	__u64 code_before, code_after; /* the words of code around the PC: struct unwind_code */
	__u64 regs[OFFCPU_SNAPSHOT_REGS]; /* struct pt_regs */
	__u8 stack[OFFCPU_SNAPSHOT_BYTES];
};

/* A wait that was open when the recording was frozen, or when its thread left the cgroup. */
struct offcpu_ev_open {
	__u32 type;
	__u32 pad;
	__u64 start; /* CLOCK_MONOTONIC, or the recording's start for initial waits */
	__u64 end; /* 0 = the end of the recording */
	__u64 runnable_ns; /* OFFCPU_UNKNOWN_NS = not known */
	struct offcpu_key key;
};

#define OFFCPU_UNKNOWN_NS (~0ULL)

/* With --events: a wait that has ended, or a sample of a thread that ran, instead of its part of a sum. */
struct offcpu_ev_wait {
	__u32 type;
	__u32 pad;
	__u64 start_ns, total_ns;
	__u64 runnable_ns; /* OFFCPU_UNKNOWN_NS = not known */
	struct offcpu_key key;
};

/*
 * Per CPU. Each wait that is seen is in exactly one other counter: seen = recorded + those marked `filtered`
 * + those marked `lost`, for counts and, with those that have a duration, for nanoseconds.
 */
struct offcpu_counters {
	__u64 seen, seen_ns;
	__u64 recorded, recorded_ns;
	__u64 preempted, preempted_ns; /* filtered: stayed runnable */
	__u64 state, state_ns; /* filtered: --state */
	__u64 min, min_ns; /* filtered: --min */
	__u64 max, max_ns; /* filtered: --max */
	__u64 owner; /* filtered: processes that the caller may not trace; no duration */
	__u64 agg_full, agg_full_ns; /* lost: no room in the aggregation map */
	__u64 storage; /* lost: no task storage, so no duration either, like the next three */
	__u64 begin_unseen; /* lost: the tracepoint missed the switch away */
	__u64 end_unknown; /* lost: it missed the switch back, and nothing says when the thread ran again */
	__u64 hidden; /* filtered or lost: of threads whose switches away this kernel never reports */
	__u64 ring_full; /* stacks that could not be sent (sent again at their next wait) */
	__u64 ring_thread; /* thread names that could not be sent (sent again) */
	__u64 ring_waker; /* wakers that could not be sent (sent again) */
	__u64 ring_life; /* lives of threads that could not be sent */
	__u64 waker_storage; /* wake-ups without task storage */
	__u64 end_estimated; /* the tracepoint missed the switch back: the end is computed */
	__u64 invisible; /* not recorded: thread not visible in the recorder's PID namespace; not in `seen` */
	__u64 clock_back; /* waits that ended before they began: counted as 0 ns */
	__u64 cpu_samples, cpu_samples_ns; /* of what threads executed, and what they stand for */
	__u64 cpu_lost; /* lost: no task storage, or no room in the aggregation map */
	__u64 cpu_missed; /* periods of a CPU in which its clock did not fire */
	__u64 ring_wait; /* with --events: summed, since the ring buffer was nearly full */
	/* --sample-stacks: waits that began, with stacks of their own, and without */
	__u64 stacks_taken, stacks_kept;
	__u64 spent_ns; /* --overhead: in this program */
	__u64 kernel_failed; /* kernel stacks with no frames */
	__u64 kernel_walked; /* kernel stacks by our own walk, this one or an earlier: bpf/offcpu_orc.bpf.h */
	/* by bpf_get_stack(): enum orc_refusal */
	__u64 kernel_unready, kernel_outside, kernel_interrupt, kernel_unproved;
	__u64 kernel_compared, kernel_differs; /* taken both ways */
	__u64 user_recognised; /* user stacks by an earlier walk: bpf/trail.bpf.h */
	__u64 scripts_recognised; /* with the functions of an interpreter: bpf/python_same.bpf.h */
	__u64 user_compared, user_differs; /* of user_recognised, walked as well; of both */
	__u64 user_failed; /* user stacks with no frames, except those of kernel threads */
	__u64 walked_late; /* waits that got their user stack after the unwind table had come */
	__u64 snapshots; /* sent */
	__u64 snapshots_ring, snapshots_limit; /* not taken: the ring buffer is filling; too many */
	__u64 script_thread, script_memory, script_mismatch; /* stacks without them: enum script_reason */
	__u64 script_ring; /* names of functions that could not be sent (sent again) */
};

/* What a thread did from one time to another, of its life and of the recording. */
struct offcpu_life {
	__u64 from_ns, to_ns;
	__u64 ran_ns; /* on a CPU */
	__u64 queued_ns; /* on a run queue; OFFCPU_UNKNOWN_NS = not known */
	__u64 runs; /* it runs on */
};

/* A thread has ended, or replaced its image; or, from the `open_waits` iterator, it lives on. */
struct offcpu_ev_life {
	__u32 type;
	__u32 ns_tid;
	struct offcpu_life life;
	struct offcpu_key key; /* nothing but the thread's identity means anything */
	char comm[OFFCPU_COMM_LEN]; /* "" = not known: the thread was called otherwise */
};

/* The kernel's own unwind table (ORC), by addresses of its symbols. */
struct offcpu_orc {
	__u64 ips; /* __start_orc_unwind_ip: 32 bits a row, relative to themselves, sorted */
	__u64 entries; /* __start_orc_unwind: struct orc_entry */
	__u64 text_start, text_end; /* the kernel's own code: _stext, _etext */
	__u64 modules; /* mod_tree; 0 = not known */
	__u64 hooks[4]; /* what tracers put in place of return addresses; 0 = none */
	__u32 rows; /* 0 = the table is not known */
	__u32 pad;
};

/* Offsets of the fields in the record of a classic tracepoint, in bytes. */
struct offcpu_fields {
	__u16 prev_state, next_pid; /* sched/sched_switch */
	__u16 newtask_pid, newtask_comm, newtask_flags; /* task/task_newtask */
	__u16 rename_pid, rename_newcomm; /* task/task_rename; pid 0 = no such field */
};

_Static_assert(sizeof(struct offcpu_key) == 80, "offcpu_key");
_Static_assert(sizeof(struct offcpu_value) == 56, "offcpu_value");
_Static_assert(sizeof(struct offcpu_wait) == 320, "offcpu_wait");
_Static_assert(sizeof(struct offcpu_woken) == 176, "offcpu_woken");
_Static_assert(sizeof(struct offcpu_ev_waker) == 104, "offcpu_ev_waker");
_Static_assert(sizeof(struct offcpu_ev_thread) == 80, "offcpu_ev_thread");
_Static_assert(sizeof(struct offcpu_ev_image) == 32, "offcpu_ev_image");
_Static_assert(sizeof(struct offcpu_ev_snapshot) == 96 + 8 * OFFCPU_SNAPSHOT_REGS + OFFCPU_SNAPSHOT_BYTES,
	"offcpu_ev_snapshot");
_Static_assert(sizeof(struct offcpu_ev_open) == 112, "offcpu_ev_open");
_Static_assert(sizeof(struct offcpu_ev_wait) == 112, "offcpu_ev_wait");
_Static_assert(sizeof(struct offcpu_ev_life) == 144, "offcpu_ev_life");
_Static_assert(sizeof(struct offcpu_ev_stack) == 40 + 8 * OFFCPU_FRAMES_MAX, "offcpu_ev_stack");
_Static_assert(sizeof(struct offcpu_counters) % 8 == 0, "offcpu_counters");

_Static_assert(__builtin_offsetof(struct offcpu_ev_stack, id) == 8, "ev_stack.id");
_Static_assert(__builtin_offsetof(struct offcpu_ev_stack, frames) == 40, "ev_stack.frames");
_Static_assert(__builtin_offsetof(struct offcpu_key, kernel) == 24, "key.kernel");
_Static_assert(OFFCPU_KEY_BARE == 64, "key.waker");

#endif
