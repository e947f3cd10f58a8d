/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as a perf map.
 */
#include "symbols/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct perfmap *m;
	struct perfmap_hit hit;

	if (perfmap_parse((const char *)data, len, &m, NULL) != 0)
		return 0;
	for (uint64_t addr = 0; addr < 300; addr++)
		if (perfmap_find(m, addr, &hit) &&
			(addr < hit.piece_start || addr >= hit.piece_end || hit.piece_start < hit.start ||
				hit.piece_end > hit.end || !*hit.name))
			abort();
	perfmap_free(m);
	return 0;
}
