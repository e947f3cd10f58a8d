/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An empty program at sched_switch: the lowest possible cost, for scripts/bench.d/switch-cost. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/sched_switch")
int empty_switch(void *ctx)
{
	(void)ctx;
	return 0;
}
