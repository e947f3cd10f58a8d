/* SPDX-License-Identifier: GPL-2.0-or-later */
/* procmaps - libFuzzer target (`make fuzz`): lines of /proc/PID/maps. */
#include "system/maps.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *line = malloc(size + 1);
	struct procmap m;

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	if (procmaps_parse(line, &m) &&
		(m.start >= m.end || m.path < line || m.path + strlen(m.path) > line + size))
		__builtin_trap();
	return 0;
}
