/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as the index of a .dwp. The first
 * eight are the ID to search for.
 */
#include "elf/dwarf_split.h"

#include <elf.h>
#include <string.h>

#define MAX_BYTES (64 << 20)
#define INFO_BYTES 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char names[] = "\0.debug_info.dwo\0.debug_cu_index";

static void look(const struct dwarf_index *x, uint64_t id)
{
	struct dwarf_index_parts p;

	if (dwarf_index_find(x, id, &p, NULL) == 0 &&
		p.of[DWARF_SECTION_INFO].offset + p.of[DWARF_SECTION_INFO].size > INFO_BYTES)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elffile_section secs[3] = { { .type = SHT_STRTAB, .size = sizeof(names) },
		{ .name = 1, .type = SHT_PROGBITS, .size = INFO_BYTES },
		{ .name = 17, .type = SHT_PROGBITS, .offset = INFO_BYTES } };
	struct elffile f = { .fd = -1, .is64 = true, .sections = secs, .n_sections = 3 };
	_cleanup_free_ uint8_t *image = calloc(1, INFO_BYTES + len);
	struct dwarf_sections *s = NULL;
	struct dwarf_index *x = NULL;
	uint64_t id;

	if (len < 8 || !image)
		return 0;
	memcpy(&id, data, 8);
	memcpy(image, names, sizeof(names));
	memcpy(image + INFO_BYTES, data + 8, len - 8);
	secs[2].size = len - 8;
	f.image = image;
	f.size = INFO_BYTES + len - 8;
	if (dwarf_sections_open(&f, true, MAX_BYTES, &s, NULL) == 0 &&
		dwarf_index_open(s, DWARF_SECTION_CU_INDEX, &x, NULL) == 0) {
		look(x, id);
		look(x, 0);
	}
	dwarf_index_close(x);
	dwarf_sections_close(s);
	return 0;
}
