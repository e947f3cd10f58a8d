/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as an ELF file, through every
 * symbol reader.
 */
#include "elf/symbols.h"
#include "symbols/lookup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elffile *f = NULL;
	struct elfsym *s = NULL;
	struct elfsym_hit hit;
	char pretty[DEMANGLE_OUT_MAX];
	uint64_t start, end, vaddr;

	if (elffile_image(data, len, &f, NULL) != 0)
		return 0;
	elffile_vaddr(f, len / 2, &vaddr);
	if (elfsym_load(f, &s, NULL) == 0)
		for (size_t i = 0; elfsym_range(s, i, &start, &end, &hit); i++)
			if (hit.index != UINT32_MAX)
				demangle(hit.name, pretty, sizeof(pretty));
	elfsym_free(s);
	elffile_close(f);
	return 0;
}
