/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel types that the BPF programs use, with only the members that they
 * read. libbpf relocates every access to the layout of the running kernel
 * (CO-RE), so order and gaps do not matter here. All integers are unsigned,
 * whatever they are in the kernel: libbpf adjusts only the size of unsigned
 * ones, and sizes change (task_struct.on_cpu became a byte in Linux 7.2).
 */
#ifndef STACKTOOLS_KERNEL_H
#define STACKTOOLS_KERNEL_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <asm/ptrace.h>

#include <stdbool.h>

#if defined(__TARGET_ARCH_arm64)
/* arch/arm64/include/asm/ptrace.h: programs know only what it begins with. */
struct pt_regs {
	struct user_pt_regs user;
	__u64 orig_x0;
	__s32 syscallno; /* negative: not in a system call */
	__u32 unused;
};
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	unsigned int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

/* IDs and sets that the kernel wraps in a struct of one number. */
struct id_of_user {
	__u32 value;
};

struct set_of_caps {
	__u64 value;
};

struct user_namespace {
	struct user_namespace *parent;
	unsigned int level;
	struct id_of_user owner;
};

struct cred {
	struct id_of_user uid, gid, suid, sgid, euid, egid;
	struct set_of_caps cap_permitted;
	struct user_namespace *user_ns;
};

struct mm_struct {
	unsigned long start_code, start_stack;
	struct user_namespace *user_ns;
};

/* mm_struct.flags: one word before 6.18, a bit map since. */
struct mm_struct___word {
	unsigned long flags;
};

struct bits_of_mm {
	__u64 words[1];
};

struct mm_struct___bits {
	struct bits_of_mm flags;
};

/* A run queue. */
struct rq {
	__u64 clock;
	__u64 clock_task; /* without interrupts and what the hypervisor took, where the kernel counts these */
};

/* Those of one group of tasks; `rq` with CONFIG_FAIR_GROUP_SCHED. */
struct cfs_rq {
	struct rq *rq;
	unsigned int throttle_count; /* of it and those above it: how many have used up their quota */
	__u64 throttled_clock_pelt_time; /* for how long one of them had; since 5.19 */
};

struct sched_entity {
	__u64 exec_start; /* up to when, by clock_task, sum_exec_runtime counts */
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime;
	struct cfs_rq *cfs_rq; /* of the CPU that it was on last, whatever its class; also with that option */
};

/* Since 6.12. */
struct sched_entity___delayed {
	unsigned char sched_delayed; /* asleep, though on a run queue */
};

/* With CONFIG_SCHED_INFO. Times are by the clock of a run queue. */
struct sched_info {
	unsigned long pcount; /* how often it got a CPU */
	__u64 run_delay; /* for how long it has been on a run queue without running, in all */
	__u64 last_queued; /* since when it is on one now; 0 = it is not, or runs */
	__u64 last_arrival; /* when it last got a CPU, in every class of scheduling */
};

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	unsigned int level; /* 0 = the root of its hierarchy */
	struct kernfs_node *kn;
	struct cgroup *ancestors[1]; /* by level, the cgroup itself included; since Linux 6.1 */
};

/* Before 6.1. */
struct cgroup___ids {
	__u64 ancestor_ids[1];
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp; /* in cgroup v2 */
};

/* x86's part of a task. The base is up to date for a thread that arch_prctl(2) or clone(2) set it for. */
struct thread_struct {
	unsigned long sp; /* of the kernel stack, while it does not run */
	unsigned long fsbase;
};

/* A function that will return through a uretprobe; the newest is first. */
struct return_instance {
	unsigned long stack; /* where its return address is */
	unsigned long orig_ret_vaddr; /* what was there */
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
};

struct task_struct {
	struct uprobe_task *utask;
	unsigned int __state;
	void *stack;
	unsigned int flags;
	int exit_state;
	unsigned int on_cpu;
	unsigned int on_rq;
	int prio; /* below MAX_RT_PRIO: a real-time class */
	unsigned int policy;
	struct sched_entity se;
	struct sched_info sched_info;
	struct mm_struct *mm;
	unsigned int pid;
	unsigned int tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	__u64 start_boottime;
	__u64 self_exec_id;
	const struct cred *real_cred;
	struct css_set *cgroups;
	char comm[16];
	struct thread_struct thread;
};

/* Before 5.14. */
struct task_struct___state {
	unsigned long state;
};

/* A row of the kernel's own unwind table (x86, CONFIG_UNWINDER_ORC). Both offsets are signed. */
struct orc_entry {
	unsigned short sp_offset, bp_offset;
	unsigned int sp_reg : 4;
	unsigned int bp_reg : 4;
	unsigned int type : 3;
	unsigned int signal : 1; /* since 6.3 */
};

/* Before 6.4. */
struct orc_entry___end {
	unsigned int end : 1;
};

/* Loaded modules by address: mod_tree (kernel/module/tree_lookup.c), of which one copy is whole at any time.
 */
struct rb_node {
	struct rb_node *rb_right, *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct latch_count {
	unsigned int sequence;
};

struct latch_tree_root {
	struct latch_count seq;
	struct rb_root tree[2];
};

struct latch_tree_node {
	struct rb_node node[2];
};

/* The names after ___ are ours: not all kernels have these. */
struct mod_tree_root___orc {
	struct latch_tree_root root;
};

struct mod_arch_specific___orc {
	unsigned int num_orcs;
	int *orc_unwind_ip;
	struct orc_entry *orc_unwind;
};

struct module___orc {
	struct mod_arch_specific___orc arch;
};

struct mod_tree_node___orc {
	struct module___orc *mod;
	struct latch_tree_node node;
};

struct module_memory___orc {
	void *base;
	unsigned int size;
	struct mod_tree_node___orc mtn;
};

/* Before 6.4. */
struct module_layout___orc {
	void *base;
	unsigned int size;
	struct mod_tree_node___orc mtn;
};

/* Only for what follows processes. */
struct task_struct___parent {
	struct task_struct *real_parent;
};

/* Since 6.18: each thread leaves its run queue by itself. */
struct task_struct___throttled {
	unsigned char throttled;
};

/* Where the calls that the thread is in are listed of which a kretprobe or fprobe took the return address. */
struct llist_head {
	void *first;
};

struct task_struct___rethooks {
	struct llist_head rethooks;
};

struct task_struct___dumpable {
	unsigned int user_dumpable : 1;
};

enum task_dumpable {
	TASK_DUMPABLE_OWNER = 1,
};

struct task_exec_state {
	enum task_dumpable dumpable;
	struct user_namespace *user_ns;
};

struct task_struct___exec {
	struct task_exec_state *exec_state;
};

#pragma clang attribute pop

/* The kernel's ABI fixes these layouts: they need no relocation, and libbpf need not search for them. */
struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#define MAX_RT_PRIO 100 /* include/linux/sched/prio.h */

/* include/uapi/linux/sched.h */
#define SCHED_NORMAL 0
#define SCHED_BATCH 3
#define SCHED_IDLE 5

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
