/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackmap - take stacks from the program types that need no kernel BTF.
 * Exactly one program is loaded at a time.
 */
#include "stackmap-take.h"
#include "stackmap-kernel.h"

char LICENSE[] SEC("license") = "GPL";

SEC("raw_tp/sys_enter")
int at_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	return ctx->args[1] == state.nr ? take(ctx) : 0;
}

SEC("tracepoint/raw_syscalls/sys_enter")
int at_tracepoint(struct sys_enter_record *ctx)
{
	return (__u64)ctx->id == state.nr ? take(ctx) : 0;
}

SEC("perf_event")
int at_perf_event(void *ctx)
{
	return take(ctx);
}

SEC("uprobe")
int at_uprobe(void *ctx)
{
	return take(ctx);
}

SEC("kprobe")
int at_kprobe(void *ctx)
{
	return take(ctx);
}
