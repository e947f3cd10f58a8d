/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads kernel memory, as far as it is readable, for lib/record/task_layout.c.
 * It is not attached: BPF_PROG_TEST_RUN runs it in the calling thread.
 */
#include <linux/types.h>
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "peek.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct peek);
} peeked SEC(".maps");

/*
 * The lowest address of the kernel's half. Tasks lie in the kernel's direct map
 * of memory, which is below the upper 2^47 bytes only with 5-level page tables.
 * The kernel's own check uses the address width of the CPU, not of the page
 * tables (seen on 5.10): it would read a non-canonical address and warn about
 * it.
 */
static __always_inline __u64 lowest(__u64 task)
{
	return task >= 0xffff800000000000 ? 0xffff800000000000 : 0xff00000000000000;
}

/* Arguments: address (0 = the current task), bytes. */
SEC("raw_tp/sys_enter")
int peek(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 addr = ctx->args[0], bytes = ctx->args[1];
	__u32 zero = 0;
	struct peek *p = bpf_map_lookup_elem(&peeked, &zero);

	if (!p)
		return 0;
	p->task = bpf_get_current_task();
	p->pid_tgid = bpf_get_current_pid_tgid();
	p->len = 0;
	if (!addr)
		addr = p->task;
	for (__u32 i = 0; i < PEEK_MAX / PEEK_PIECE; i++) {
		__u64 at = addr + i * PEEK_PIECE;

		if (i * PEEK_PIECE >= bytes || at < lowest(p->task) ||
			bpf_probe_read_kernel(p->bytes + i * PEEK_PIECE, PEEK_PIECE, (void *)at))
			break;
		p->len = (i + 1) * PEEK_PIECE;
	}
	return 0;
}

__u32 watched; /* thread, by its ID in the initial PID namespace */

/*
 * What the tracepoint reports when that thread waits. If sched_switch has no
 * state (before Linux 5.18), the kernel refuses to attach a program that reads
 * it.
 */
SEC("raw_tp/sched_switch")
int watch(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 task = ctx->args[1], state = ctx->args[3];
	__u32 zero = 0;
	struct peek *p;

	if ((__u32)bpf_get_current_pid_tgid() != watched)
		return 0;
	p = bpf_map_lookup_elem(&peeked, &zero);
	if (!p)
		return 0;
	p->left = task;
	p->left_state |= state;
	return 0;
}
