/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as .debug_line. The first two bytes
 * choose where the program begins and the size of an address.
 */
#include "elf/dwarf_lines.h"

#include <elf.h>
#include <string.h>

#define MAX_BYTES (64 << 20)
#define N 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char names[] = "\0.debug_line\0.debug_line_str\0.debug_str";

static void run(struct dwarf_sections *s, uint64_t offset, uint8_t addr_size, size_t len)
{
	struct dwarf_line_opts o = {
		.offset = offset, .addr_size = addr_size, .comp_dir = "/c", .name = "n"
	};
	struct dwarf_line *l = NULL;
	uint64_t at[N];
	struct dwarf_line_row rows[N] = { 0 };

	for (uint64_t i = 0; i < N; i++)
		at[i] = i < N / 2 ? i : i * i * i << 3;
	if (dwarf_line_open(s, &o, &l, NULL) == 0) {
		dwarf_line_run(l, at, N, rows, NULL);
		for (size_t i = 0; i < N; i++)
			dwarf_line_file(l, rows[i].file);
		for (uint32_t i = 0; i < 20; i++)
			dwarf_line_file(l, i);
		if (dwarf_line_bytes(l) > MAX_BYTES + 200 * len)
			abort();
	}
	dwarf_line_close(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elffile_section secs[4] = { { .type = SHT_STRTAB, .size = sizeof(names) },
		{ .name = 1, .type = SHT_PROGBITS, .offset = 64 },
		{ .name = 13, .type = SHT_PROGBITS, .offset = 64 },
		{ .name = 29, .type = SHT_PROGBITS, .offset = 64 } };
	struct elffile f = { .fd = -1, .is64 = true, .sections = secs, .n_sections = 4 };
	_cleanup_free_ uint8_t *image = NULL;
	struct dwarf_sections *s = NULL;

	if (len < 2)
		return 0;
	image = malloc(64 + len - 2);
	memcpy(image, names, sizeof(names));
	memcpy(image + 64, data + 2, len - 2);
	for (size_t i = 1; i < 4; i++)
		secs[i].size = len - 2;
	f.image = image;
	f.size = 64 + len - 2;
	if (dwarf_sections_open(&f, false, MAX_BYTES, &s, NULL) == 0)
		run(s, data[0] & 0x1f ? 0 : data[0], data[1] & 1 ? 4 : 8, len);
	dwarf_sections_close(s);
	return 0;
}
