/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programs of offcpu.bpf.c for a kernel without BTF or without tp_btf. They
 * attach to raw tracepoints, or to classic ones if raw tracepoints are refused
 * or do not report the thread state (before Linux 5.18). There are no
 * iterators: lib/record/bpf_raw.c does their work from /proc.
 */
#define OFFCPU_RAW
#include "offcpu.bpf.c"

/* A new task may reuse an ID; an exec replaces the image. */
EVENT("sched_process_fork")
int BPF_PROG(raw_fork, struct task_struct *parent, struct task_struct *child)
{
	id_reused(set_tid(child), is_leader(child) ? our_id(child) : 0);
	return 0;
}

EVENT("task_rename")
int BPF_PROG(raw_rename, struct task_struct *task)
{
	if (rename_is_exec(task))
		image_replaced(task);
	return 0;
}

#include "offcpu_classic.bpf.h"
