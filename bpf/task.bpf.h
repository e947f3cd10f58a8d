/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the two ways to be run at an event differ in. Part of offcpu.bpf.c.
 *
 *   tp_btf           the verifier knows what a task is: its members are loaded
 *                    directly, and a thread's wait is in its task storage
 *   raw tracepoint   (OFFCPU_RAW) a task is a number: members are read by a
 *                    helper (CO-RE, with whatever layout user space has), and
 *                    waits are in a hash by thread id
 *
 * Where a task's member is read: task_get(task, member), in either way. A
 * member that user space may not know the place of is asked for with
 * bpf_core_field_exists() first.
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
