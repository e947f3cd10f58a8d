/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a switch or a wake-up costs that concerns no target: most of them. Part of offcpu.bpf.c.
 *
 * The scheduler has just used both tasks and their cgroups, so to read them costs little. A variable or a map
 * of ours nothing has used: where the kernel flushes the TLB at each system call, the first one that is read,
 * a constant in .rodata included, adds half of what an empty program costs. So whom the recording concerns is
 * in the code itself, as far as it is known before the programs are loaded.
 */
#ifndef STACKTOOLS_OFFCPU_OTHERS_BPF_H
#define STACKTOOLS_OFFCPU_OTHERS_BPF_H

#define IN_CODE(number)                                                                                      \
	({                                                                                                   \
		__u64 value_;                                                                                \
		asm("%0 = " OTHERS_STRING(number) " ll" : "=r"(value_));                                     \
		value_;                                                                                      \
	})
#define OTHERS_STRING(number) OTHERS_STRING_OF(number)
#define OTHERS_STRING_OF(number) #number

#ifndef OFFCPU_RAW

/* Is a task with SET in the cgroup? */
static __always_inline bool is_inside_by(struct css_set *set)
{
	__u64 subsys = IN_CODE(OFFCPU_CODE_SUBSYS);
	struct cgroup_subsys_state **css;
	struct cgroup *cgrp;

	if (subsys) {
		css = (void *)set + bpf_core_field_offset(struct css_set, subsys) +
		      (subsys - 1) * sizeof(*css);
		cgrp = (*css)->cgroup;
	} else {
		cgrp = set->dfl_cgrp;
	}
	return is_inside(cgrp, IN_CODE(OFFCPU_CODE_ID), IN_CODE(OFFCPU_CODE_LEVEL));
}

static __always_inline bool is_other_kthread(struct task_struct *task, __u64 who)
{
	return who == OFFCPU_WHO_CGROUP && task->flags & PF_KTHREAD;
}

static __always_inline bool is_other(struct task_struct *task)
{
	__u64 who = IN_CODE(OFFCPU_CODE_WHO);

	if (who == OFFCPU_WHO_PROCESS)
		return task->tgid != (__u32)IN_CODE(OFFCPU_CODE_ID);
	if (who == OFFCPU_WHO_CGROUP || who == OFFCPU_WHO_CGROUP_KTHREADS)
		return is_other_kthread(task, who) || !is_inside_by(task->cgroups);
	return false;
}

/* For two tasks, the first of them current, often with the same cgroups: is neither a target for certain? */
static __always_inline bool both_others(struct task_struct *a, struct task_struct *b)
{
	__u64 who = IN_CODE(OFFCPU_CODE_WHO);
	struct css_set *set;

	if (who != OFFCPU_WHO_CGROUP && who != OFFCPU_WHO_CGROUP_KTHREADS)
		return is_other(a) && is_other(b);
	set = a->cgroups;
	if (set != b->cgroups)
		return is_other(a) && is_other(b);
	return !is_inside_by(set);
}

#else

/* In the initial PID namespace alone: reading a task takes a helper, the ID of the current one a short one.
 */
static __always_inline bool both_others(struct task_struct *a, struct task_struct *b)
{
	__u32 tgid = IN_CODE(OFFCPU_CODE_ID);

	return IN_CODE(OFFCPU_CODE_WHO) == OFFCPU_WHO_PROCESS && bpf_get_current_pid_tgid() >> 32 != tgid &&
	       task_get(b, tgid) != tgid;
}

#endif

#endif
