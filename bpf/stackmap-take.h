/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackmap-take - the maps and the code that all stackmap programs share: take
 * the stacks of the chosen thread. Included by *.bpf.c only.
 */
#ifndef STACKTOOLS_BPF_STACKMAP_TAKE_H
#define STACKTOOLS_BPF_STACKMAP_TAKE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "stackmap.h"

/* Size, depth and flags are set before loading: they are being tested. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1024);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 127 * sizeof(__u64));
} stacks SEC(".maps");

/* The second map of the two-map pattern: stack id (or -errno) to count. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __s32);
	__type(value, __u64);
} counts SEC(".maps");

/* Whether the single shot was taken; user space empties this map before arming. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} taken SEC(".maps");

struct stackmap_state state;

static __always_inline int is_ours(void)
{
	struct bpf_pidns_info who = {};

	if (!state.armed)
		return 0;
	if (bpf_get_ns_current_pid_tgid(state.ns_dev, state.ns_ino, &who, sizeof(who)))
		return 0;
	return who.tgid == state.tgid && (!state.tid || who.pid == state.tid);
}

static __always_inline void count_one(void *ctx)
{
	__s32 key = (__s32)bpf_get_stackid(ctx, &stacks, state.id_flags[STACKMAP_USER]);
	__u64 *n = bpf_map_lookup_elem(&counts, &key);
	__u64 zero = 0;

	if (!n) {
		/* another thread may be first: then its element is found below */
		bpf_map_update_elem(&counts, &key, &zero, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&counts, &key);
	}
	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline void take_half(void *ctx, int half)
{
	__u32 bytes = state.get_bytes;

	if (!(state.halves & (1U << half)))
		return;
	if (bytes > sizeof(state.frames[0]))
		bytes = sizeof(state.frames[0]);
	state.id[half] = bpf_get_stackid(ctx, &stacks, state.id_flags[half]);
	state.got[half] = bpf_get_stack(ctx, state.frames[half], bytes, state.get_flags[half]);
}

/*
 * Two CPUs may see the armed state, but only one may take the stacks. A map
 * decides which: programs have no atomic exchange before Linux 5.12.
 */
static __always_inline void take_once(void *ctx)
{
	__u32 zero = 0;

	if (bpf_map_update_elem(&taken, &zero, &zero, BPF_NOEXIST))
		return;
	state.armed = STACKMAP_OFF;
	take_half(ctx, STACKMAP_KERNEL);
	take_half(ctx, STACKMAP_USER);
	__sync_fetch_and_add(&state.hits, 1);
}

static __always_inline int take(void *ctx)
{
	if (!is_ours())
		return 0;
	if (state.armed == STACKMAP_COUNT)
		count_one(ctx);
	else if (state.armed == STACKMAP_ONCE)
		take_once(ctx);
	return 0;
}

#endif
