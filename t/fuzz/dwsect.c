/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as an ELF file with debug sections, packed ones among them, for libFuzzer (`make fuzz`).
 */
#include "elf/dwarf_sections.h"

#include <string.h>

#define MAX_BYTES (4 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What it holds stays below the limit, whatever sizes are claimed. */
static void use(struct dwsect *s, enum dwsect_id id, struct dwpiece *p)
{
	uint64_t size = dwsect_size(s, id);

	dwsect_read(s, id, 0, UINT64_MAX, p, NULL);
	dwsect_read(s, id, size / 2, 100, p, NULL);
	for (uint64_t k = 0; k < 8; k++) {
		const char *str = dwsect_string(s, id, size / 8 * k);

		if (str && strlen(str) >= size)
			abort();
	}
	if (dwsect_bytes(s) > MAX_BYTES)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elffile *f = NULL;
	struct dwsect *s = NULL;
	struct dwpiece p = { 0 };

	if (elffile_image(data, len, &f, NULL) == 0 && dwsect_open(f, len & 1, MAX_BYTES, &s, NULL) == 0)
		for (int id = 0; id < DWSECT_COUNT; id++)
			use(s, (enum dwsect_id)id, &p);
	dwpiece_free(&p);
	dwsect_close(s);
	elffile_close(f);
	return 0;
}
