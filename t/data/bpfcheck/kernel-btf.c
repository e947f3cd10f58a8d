/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What bpfcheck looks for in a kernel's BTF, and nothing else: the source of
 * each tree's sys/kernel/btf/vmlinux, which was made by
 *   clang -target bpf -g -DKERNEL=601 -c kernel-btf.c -o k.o
 *   llvm-objcopy --dump-section .BTF=vmlinux k.o
 * with KERNEL 510 and 515 for what those kernels did not have yet.
 */
#ifndef KERNEL
#define KERNEL 601
#endif

typedef unsigned long long u64;
typedef _Bool bool;

struct mm_struct {
	unsigned long start_stack;
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct sched_entity {
	u64 sum_exec_runtime, prev_sum_exec_runtime;
};

struct task_struct {
	struct {
#if KERNEL >= 514
		unsigned int __state;
#else
		long state;
#endif
		unsigned int flags;
	};
	int on_cpu;
	struct sched_entity se;
	struct mm_struct *mm;
	int pid, tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	u64 start_boottime, self_exec_id;
	char comm[16];
};

struct bpf_iter__task {
	struct task_struct *task;
};

#if KERNEL >= 518
typedef void (*btf_trace_sched_switch)(
	void *, bool, struct task_struct *, struct task_struct *, unsigned int);
#else
typedef void (*btf_trace_sched_switch)(void *, bool, struct task_struct *, struct task_struct *);
#endif
typedef void (*btf_trace_sched_process_fork)(void *, struct task_struct *, struct task_struct *);
typedef void (*btf_trace_sched_process_exec)(void *, struct task_struct *, int, void *);
typedef void (*btf_trace_task_rename)(void *, struct task_struct *, const char *);

enum bpf_func_id {
	BPF_FUNC_get_stack = 67,
	BPF_FUNC_probe_read_user = 112,
	BPF_FUNC_probe_read_kernel = 113,
	BPF_FUNC_probe_read_kernel_str = 115,
	BPF_FUNC_seq_write = 127,
	BPF_FUNC_ringbuf_output = 130,
	BPF_FUNC_ringbuf_reserve = 131,
	BPF_FUNC_ringbuf_query = 134,
	BPF_FUNC_get_task_stack = 141,
#if KERNEL >= 511
	BPF_FUNC_task_storage_get = 156,
#endif
#if KERNEL >= 515
	BPF_FUNC_task_pt_regs = 175,
#endif
#if KERNEL >= 518
	BPF_FUNC_loop = 181,
	BPF_FUNC_copy_from_user_task = 191,
#endif
};

enum bpf_map_type {
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
#if KERNEL >= 511
	BPF_MAP_TYPE_TASK_STORAGE = 29,
#endif
};

enum {
	BPF_F_MMAPABLE = 1024,
} flags;

struct mm_struct mm;
struct pid_namespace pid_ns;
struct pid pid;
struct task_struct task;
struct bpf_iter__task iter;
btf_trace_sched_switch on_switch;
btf_trace_sched_process_fork on_fork;
btf_trace_sched_process_exec on_exec;
btf_trace_task_rename on_rename;
enum bpf_func_id func;
enum bpf_map_type type;
