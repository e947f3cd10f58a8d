/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * misguide RECORDER [python_wholes] - for half a second, lets every trail that a recorder keeps lead to
 * another stack, or every native stack with the functions of CPython: as if stacks were recognised wrongly.
 */
#include "maps.h"

#include <stdlib.h>

/* Where the ID of the stack is. */
#define TRAIL_ID 32 /* struct trail: bpf/trail.bpf.h */
#define WHOLE_ID 24 /* struct python_whole: bpf/python_same.bpf.h */
#define CPUS 1024

static void misguide(int map, uint32_t number, uint32_t size, uint32_t id_at, uint8_t *values)
{
	union bpf_attr of = { 0 };

	of.map_fd = (uint32_t)map;
	of.key = (uintptr_t)&number;
	of.value = (uintptr_t)values;
	if (bpf(BPF_MAP_LOOKUP_ELEM, &of) != 0)
		return;
	for (int cpu = 0; cpu < CPUS; cpu++) {
		uint64_t id[2];
		uint8_t *at = values + (size_t)cpu * size + id_at;

		memcpy(id, at, sizeof(id));
		id[1] ^= id[0] ? 1 : 0;
		memcpy(at, id, sizeof(id));
	}
	bpf(BPF_MAP_UPDATE_ELEM, &of);
}

int main(int argc, char **argv)
{
	uint32_t size;
	uint8_t *values;
	int map;

	if (argc < 2)
		return 64;
	map = map_of(argv[1], argc > 2 ? argv[2] : "trails", &size);
	values = calloc(CPUS, size ? size : 1);
	if (map < 0 || !values) {
		fprintf(stderr, "misguide: process %s keeps no trails\n", argv[1]);
		free(values);
		return 1;
	}
	for (int i = 0; i < 50; i++) {
		for (uint32_t number = 0; number < (argc > 2 ? 512 : 128); number++)
			misguide(map, number, size, argc > 2 ? WHOLE_ID : TRAIL_ID, values);
		usleep(10000);
	}
	free(values);
	return 0;
}
