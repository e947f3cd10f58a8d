/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the recorder's caller could have traced a task anyway. Part of
 * offcpu.bpf.c.
 */
#ifndef STACKTOOLS_OFFCPU_OWNER_BPF_H
#define STACKTOOLS_OFFCPU_OWNER_BPF_H

const volatile bool owner_only;

static __always_inline bool owner_allows(struct task_struct *task)
{
	return true;
}

#endif
