/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes one kernel and one user stack of one process, to check that this works.
 * It is a raw tracepoint program without relocations and needs no kernel BTF,
 * so a failure here is caused by stacks, not by BTF.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

#define DEPTH 127

const volatile __u64 ns_dev, ns_ino; /* the PID namespace of `tgid` */
const volatile __u32 tgid;

__u32 taken;
long kernel_id, user_id; /* stack IDs, or -errno */

/* One bucket is enough: only one stack goes into each. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, DEPTH * sizeof(__u64));
} kernel_stacks SEC(".maps"), user_stacks SEC(".maps");

SEC("raw_tp/sched_switch")
int take_stack(void *ctx)
{
	struct bpf_pidns_info me = {};

	if (taken || bpf_get_ns_current_pid_tgid(ns_dev, ns_ino, &me, sizeof(me)) || me.tgid != tgid)
		return 0;
	kernel_id = bpf_get_stackid(ctx, &kernel_stacks, 0);
	user_id = bpf_get_stackid(ctx, &user_stacks, BPF_F_USER_STACK);
	taken = 1;
	return 0;
}
