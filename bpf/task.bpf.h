/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differences between the two ways to run at an event. Part of
 * offcpu.bpf.c.
 *
 *   tp_btf           the verifier knows the type of a task: members are loaded
 *                    directly, and a thread's wait is in its task storage
 *   raw tracepoint   (OFFCPU_RAW) a task is a number: a helper reads members
 *                    (CO-RE, with the layout that user space has), and waits
 *                    are in a hash by thread ID
 *
 * Both read a member with task_get(task, member). For a member whose location
 * user space may not know, check bpf_core_field_exists() first.
 */
#ifndef STACKTOOLS_TASK_BPF_H
#define STACKTOOLS_TASK_BPF_H

#ifdef OFFCPU_RAW
#define EVENT(name) SEC("raw_tp/" name)
#define task_get(task, member) BPF_CORE_READ(task, member)
#else
#define EVENT(name) SEC("kern_tp/" name)
#define task_get(task, member) ((task)->member)
#endif

#include "kernel_cast.h"

const volatile __u32 cast_type; /* ID of the kernel's struct pt_regs; 0 = kernel_word() must not be called */

/*
 * The word at ADDRESS in the kernel's memory, by a load: a helper takes ten times as long. What is not
 * readable is 0. The type is any one that begins with a number. (Loads of pointers, by their types, cost
 * milliseconds at every start, as the verifier looks for each by its name.)
 */
static __always_inline __u64 kernel_word(__u64 address)
{
	const __u64 *(*const cast)(__u64 at, __u32 type) = (void *)KERNEL_CAST;

	return *cast(address, cast_type);
}

/* A member of eight bytes of *P, which BPF_CORE_READ() reads where kernel_word() cannot. */
#ifdef OFFCPU_RAW
#define kernel_member(p, member) ((__u64)BPF_CORE_READ(p, member))
#else
#define kernel_member(p, member)                                                                             \
	(cast_type ? kernel_word((__u64)(p) + bpf_core_field_offset(__typeof__(*(p)), member))               \
		   : (__u64)BPF_CORE_READ(p, member))
#endif

#endif
