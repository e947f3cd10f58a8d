/* SPDX-License-Identifier: GPL-2.0-or-later */
/* walks RECORDER - has a recorder that runs, or is about to, walk each user stack: none is recognised any
 * more. */
#include "../work/maps.h"

#include "offcpu_abi.h"
#include "unwind_abi.h"

#include "offcpu.skel.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
	struct offcpu_bpf__bss *bss = MAP_FAILED;
	uint32_t size;

	if (argc != 2)
		return 64;
	for (int i = 0; i < 1000 && bss == MAP_FAILED; i++) {
		const int map = map_of(argv[1], "offcpu_b.bss", &size);

		if (map >= 0 && size >= sizeof(*bss))
			bss = mmap(NULL, sizeof(*bss), PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
		usleep(bss == MAP_FAILED ? 1000 : 0);
	}
	if (bss == MAP_FAILED) {
		fprintf(stderr, "walks: process %s has no such variables\n", argv[1]);
		return 1;
	}
	bss->mistaken = 1;
	return 0;
}
