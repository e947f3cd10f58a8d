/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as a relocatable file, laid out and
 * searched for lines and inlined calls. An object of `gcc -g -c` is a good
 * seed.
 */
#include "elf/reloc.h"
#include "symbols/lookup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint64_t vaddrs[] = { 0x100000, 0x100004, 0x100010, 0x100100, 0x100400 };
	struct elffile *f = NULL;
	struct sym_lookup_input in = { .vaddrs = vaddrs,
		.n_vaddrs = ARRAY_LEN(vaddrs),
		.inlines = true,
		.lines = true,
		.max_bytes = 64 << 20 };
	uint8_t *answer = NULL;
	size_t answer_len;

	if (elffile_image(data, len, &f, NULL) != 0)
		return 0;
	in.elf = f;
	if (elfrel_is(f) && sym_lookup(&in, &answer, &answer_len, NULL) == 0)
		free(answer);
	elffile_close(f);
	return 0;
}
