/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackmap-kernel - the members of kernel types that the stackmap programs use.
 * Offsets are fixed up at load time from the running kernel's BTF.
 */
#ifndef STACKTOOLS_BPF_STACKMAP_KERNEL_H
#define STACKTOOLS_BPF_STACKMAP_KERNEL_H

#include <linux/types.h>

#define TASK_INTERRUPTIBLE 1 /* include/linux/sched.h */
#define PF_KTHREAD 0x00200000

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int pid;
} __attribute__((preserve_access_index));

/* before Linux 5.14 */
struct task_struct___old {
	long state;
} __attribute__((preserve_access_index));

#endif
