/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/capneeds.h"

#include <string.h>

/*
 * Tools that are not here take no privilege: symbolize, fold and capinfo read
 * captures, and symbolize what its caller may read.
 *
 * What offcpu-record does without BPF (samples of /proc, ptrace) is not here
 * either: it is done to one's own processes and takes nothing.
 */
static const struct capneed needs[] = {
	{ TOOL_OFFCPU_RECORD, "map.array", NULL },
	{ TOOL_OFFCPU_RECORD, "map.mmapable_array", NULL },
	{ TOOL_OFFCPU_RECORD, "map.hash", NULL },
	{ TOOL_OFFCPU_RECORD, "map.percpu_array", NULL },
	{ TOOL_OFFCPU_RECORD, "map.lru_hash", NULL },
	{ TOOL_OFFCPU_RECORD, "map.ring_buffer", NULL },
	{ TOOL_OFFCPU_RECORD, "map.array_of_maps", NULL },
	{ TOOL_OFFCPU_RECORD, "map.task_storage", NULL },
	{ TOOL_OFFCPU_RECORD, "map.prog_array", NULL },
	{ TOOL_OFFCPU_RECORD, "map.btf", NULL },
	{ TOOL_OFFCPU_RECORD, "record.*", NULL },
	{ TOOL_OFFCPU_RECORD, "attach.*", NULL },
	{ TOOL_OFFCPU_RECORD, "iterator.*", NULL },
	{ TOOL_OFFCPU_RECORD, "kernel.btf", NULL },
	{ TOOL_OFFCPU_RECORD, "raw.*", "records where the kernel has no BTF" },
	{ TOOL_OFFCPU_RECORD, "perf.system", "sees mappings and names that change while it records" },
	{ TOOL_OFFCPU_RECORD, "kernel.kallsyms", "gives kernel frames their names" },
	{ TOOL_OFFCPU_RECORD, "proc.other.maps", "reads the mappings of other users' processes" },
	{ TOOL_OFFCPU_RECORD, "proc.other.maps_hidden",
		"reads the mappings of processes that had privileges" },
	{ TOOL_OFFCPU_RECORD, "proc.other.root",
		"opens files that other users' processes have mapped, in containers too" },
	{ TOOL_OFFCPU_RECORD, "proc.own.map_files", "opens mapped files that were deleted or replaced" },
	{ TOOL_OFFCPU_RECORD, "proc.other.map_files",
		"opens deleted or replaced files of other users' processes" },
	{ TOOL_OFFCPU_RECORD, "proc.other.private_file",
		"opens mapped files that only their owner may read" },
	{ TOOL_OFFCPU_RECORD, "proc.other.ptrace",
		"holds a command at its exec until its unwind tables are there, a set-user-ID one too" },
	{ TOOL_STACKMAP_TEST, "map.stack_trace", NULL },
	{ TOOL_STACKMAP_TEST, "map.hash", NULL },
	{ TOOL_STACKMAP_TEST, "stackmap.raw_tp", NULL },
	{ TOOL_STACKMAP_TEST, "stackmap.tracepoint", "runs its cases of tracepoints" },
	{ TOOL_STACKMAP_TEST, "stackmap.tp_btf", "runs its cases of tp_btf" },
	{ TOOL_STACKMAP_TEST, "stackmap.sched_switch", "runs its cases of sched_switch" },
	{ TOOL_STACKMAP_TEST, "stackmap.perf_event", "runs its cases of perf events" },
	{ TOOL_STACKMAP_TEST, "stackmap.uprobe", "runs its cases of uprobes" },
	{ TOOL_STACKMAP_TEST, "stackmap.kprobe", "runs its cases of kprobes" },
	{ TOOL_STACKMAP_TEST, "kernel.kallsyms", "checks what kernel stacks are made of" },
	{ TOOL_KALLSYMS_RESOLVE, "kernel.kallsyms", "names kernel addresses without a copy of kallsyms" },
};

const struct capneed *capneeds_list(size_t *n)
{
	*n = ARRAY_LEN(needs);
	return needs;
}

bool capneed_is(const struct capneed *c, const char *id)
{
	size_t len = strlen(c->step);

	return c->step[len - 1] == '*' ? strncmp(c->step, id, len - 1) == 0 : strcmp(c->step, id) == 0;
}
