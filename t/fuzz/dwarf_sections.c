/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as an ELF file with debug sections,
 * some of them compressed.
 */
#include "elf/dwarf_sections.h"

#include <string.h>

#define MAX_BYTES (4 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Memory in use stays below the limit, whatever sizes are claimed. */
static void use(struct dwarf_sections *s, enum dwarf_section_id id, struct dwarf_piece *p)
{
	uint64_t size = dwarf_sections_size(s, id);

	dwarf_sections_read(s, id, 0, UINT64_MAX, p, NULL);
	dwarf_sections_read(s, id, size / 2, 100, p, NULL);
	for (uint64_t k = 0; k < 8; k++) {
		const char *str = dwarf_sections_string(s, id, size / 8 * k);

		if (str && strlen(str) >= size)
			abort();
	}
	if (dwarf_sections_bytes(s) > MAX_BYTES)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elffile *f = NULL;
	struct dwarf_sections *s = NULL;
	struct dwarf_piece p = { 0 };

	if (elffile_image(data, len, &f, NULL) == 0 &&
		dwarf_sections_open(f, len & 1, MAX_BYTES, &s, NULL) == 0)
		for (int id = 0; id < DWARF_SECTION_COUNT; id++)
			use(s, (enum dwarf_section_id)id, &p);
	dwarf_piece_free(&p);
	dwarf_sections_close(s);
	elffile_close(f);
	return 0;
}
