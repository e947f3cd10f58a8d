/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the address and the level of the recorded cgroup, if a task is in it, before the programs of
 * offcpu.bpf.c are loaded: these then have both in their code (offcpu_others.bpf.h), and read no variable
 * at the switch of a task outside.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "offcpu_cgroup.bpf.h"

char LICENSE[] SEC("license") = "GPL";

SEC("kern_iter/task")
int find_cgroup_first(struct bpf_iter__task *ctx)
{
	if (ctx->task)
		learn_cgroup(cgroup_of(ctx->task));
	return 0;
}
