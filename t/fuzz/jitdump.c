/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes after a valid header as a jitdump
 * file.
 */
#include "symbols/jitdump.h"

#include <string.h>

#define HEADER 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void look(const struct jitdump *j, uint64_t addr, uint64_t time_ns, size_t len)
{
	struct jitdump_hit hit;

	if (jitdump_find(j, addr, time_ns, &hit) &&
		(addr < hit.piece_start || addr >= hit.piece_end || hit.piece_start < hit.start ||
			hit.piece_end > hit.end || time_ns < hit.from_ns || !*hit.name))
		abort();
	for (size_t i = 0; jitdump_each(j, addr, i, &hit); i++)
		if (addr < hit.piece_start || addr >= hit.piece_end || (hit.file && strlen(hit.file) > len))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint8_t header[HEADER] = { 0x44, 0x54, 0x69, 0x4a, 1, 0, 0, 0, HEADER };
	uint8_t *bytes = malloc(HEADER + len);
	struct jitdump *j;
	uint64_t addr;

	if (!bytes)
		return 0;
	memcpy(bytes, header, HEADER);
	if (len)
		memcpy(bytes + HEADER, data, len);
	if (jitdump_parse(bytes, HEADER + len, &j, NULL) == 0) {
		/* any number in the file may be an address */
		for (size_t i = 0; i + sizeof(addr) <= len && i < 4096; i += 8) {
			memcpy(&addr, data + i, sizeof(addr));
			look(j, addr, i, len);
			look(j, addr + 1, UINT64_MAX - 1, len);
		}
		jitdump_free(j);
	}
	free(bytes);
	return 0;
}
