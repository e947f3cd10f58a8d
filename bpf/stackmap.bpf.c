/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackmap - programs that take stacks, of the types that need no kernel BTF.
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

/*
 * Offset of the field "id" in the record, in bytes, from
 * events/raw_syscalls/sys_enter/format: real-time kernels have a longer header.
 */
const volatile __u32 id_offset = 8;

SEC("tracepoint/raw_syscalls/sys_enter")
int at_tracepoint(void *ctx)
{
	__u64 id = 0;

	bpf_probe_read_kernel(&id, sizeof(id), (const char *)ctx + id_offset);
	return id == state.nr ? take(ctx) : 0;
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
