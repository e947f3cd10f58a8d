/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel types that our BPF programs use, and of each only the members
 * they read. libbpf relocates every access to the running kernel's layout
 * (CO-RE), so order, size and what lies between do not matter here.
 */
#ifndef STACKTOOLS_KERNEL_H
#define STACKTOOLS_KERNEL_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <asm/ptrace.h>

#include <stdbool.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

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

struct mm_struct {
	unsigned long start_code, start_stack;
};

struct sched_entity {
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime;
};

struct task_struct {
	unsigned int __state;
	void *stack;
	unsigned int flags;
	int on_cpu;
	struct sched_entity se;
	struct mm_struct *mm;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	__u64 start_boottime;
	__u64 self_exec_id;
	char comm[16];
};

#pragma clang attribute pop

/*
 * These are fixed by the kernel's ABI and so need no relocation, and libbpf no
 * search for them.
 */
struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* include/linux/sched.h */
#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD 0x00200000
#define PF_USER_WORKER 0x00004000

#define TASK_RUNNING 0x0000
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_DEAD 0x0080
#define TASK_NOLOAD 0x0400
#define EXIT_DEAD 0x0010
#define EXIT_ZOMBIE 0x0020

#endif
