/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * misguide RECORDER - for half a second, lets every trail that a recorder keeps lead to another stack: as if
 * stacks were recognised wrongly.
 */
#include "maps.h"

#include <stdlib.h>

#define ID_AT 32 /* of the stack, in struct trail: bpf/trail.bpf.h */
#define CPUS 1024

static void misguide(int map, uint32_t number, uint32_t size, uint8_t *values)
{
	union bpf_attr of = { 0 };

	of.map_fd = (uint32_t)map;
	of.key = (uintptr_t)&number;
	of.value = (uintptr_t)values;
	if (bpf(BPF_MAP_LOOKUP_ELEM, &of) != 0)
		return;
	for (int cpu = 0; cpu < CPUS; cpu++) {
		uint64_t id[2];
		uint8_t *at = values + (size_t)cpu * size + ID_AT;

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

	if (argc != 2)
		return 64;
	map = map_of(argv[1], "trails", &size);
	values = calloc(CPUS, size ? size : 1);
	if (map < 0 || !values) {
		fprintf(stderr, "misguide: process %s keeps no trails\n", argv[1]);
		free(values);
		return 1;
	}
	for (int i = 0; i < 50; i++) {
		for (uint32_t number = 0; number < 128; number++)
			misguide(map, number, size, values);
		usleep(10000);
	}
	free(values);
	return 0;
}
