/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programs of offcpu.bpf.c for a kernel that gives no BTF, or has no
 * tp_btf: at raw tracepoints, and where these are refused, or tell no state
 * (before Linux 5.18), at classic ones. No iterators: what they do is done
 * from /proc by lib/record/bpf_raw.c.
 */
#define OFFCPU_RAW
#include "offcpu.bpf.c"

/* Ids are used again; an exec makes another image. */
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
