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

#endif
