/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hide THREAD RECORDER - makes a recorder believe that the thread runs on a CPU, and was never seen leaving
 * one: as if this kernel had not reported that it waits. The thread's storage becomes that of one that is not
 * known, but for `start`, which is OFFCPU_ON_CPU.
 */
#include "maps.h"

#include <errno.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	uint64_t value[128] = { 1 }; /* OFFCPU_ON_CPU */
	union bpf_attr set = { 0 };
	uint32_t size;
	int map, thread;

	if (argc != 3)
		return 64;
	map = map_of(argv[2], "waits", &size);
	if (map < 0) {
		fprintf(stderr, "hide: process %s does not record in mode btf\n", argv[2]);
		return 1;
	}
	thread = (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0);
	set.map_fd = (uint32_t)map;
	set.key = (uintptr_t)&thread;
	set.value = (uintptr_t)value;
	if (thread >= 0 && size <= sizeof(value) && bpf(BPF_MAP_UPDATE_ELEM, &set) == 0)
		return 0;
	fprintf(stderr, "hide: thread %s, %u bytes: %s\n", argv[1], size, strerror(errno));
	return 1;
}
