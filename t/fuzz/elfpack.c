/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as an ELF file to pack. The result
 * must be an ELF file with the same functions.
 */
#include "elf/pack.h"
#include "elf/symbols.h"

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void expect(bool fine)
{
	if (!fine)
		abort();
}

static void compare(const struct elfsym *a, const struct elfsym *b)
{
	struct elfsym_hit x, y;
	uint64_t s[2], e[2];

	expect(elfsym_ranges(a) == elfsym_ranges(b));
	for (size_t i = 0; elfsym_range(a, i, &s[0], &e[0], &x); i++) {
		expect(elfsym_range(b, i, &s[1], &e[1], &y));
		expect(s[0] == s[1] && e[0] == e[1] && x.index == y.index);
		expect(x.index == UINT32_MAX || strcmp(x.name, y.name) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elffile *f = NULL, *packed = NULL;
	struct elfsym *a = NULL, *b = NULL;
	struct buf out = { 0 };

	if (elffile_image(data, len, &f, NULL) != 0)
		return 0;
	buf_put(&out, "before it", 9);
	if (elfpack_make(f, NULL, 1 << 20, &out, NULL) == 0) {
		expect(out.len < 2 << 20);
		expect(elffile_image(out.p + 9, out.len - 9, &packed, NULL) == 0);
		expect(packed->n_loads == f->n_loads);
		/* section 0 is not a section, though readers take it for one if it is filled in */
		if (f->n_sections && !f->sections[0].type && !f->sections[0].flags &&
			elfsym_load(f, &a, NULL) == 0 && elfsym_load(packed, &b, NULL) == 0)
			compare(a, b);
	}
	buf_reset(&out);
	elfpack_make(f, f, 1 << 20, &out, NULL);
	elfsym_free(a);
	elfsym_free(b);
	elffile_close(packed);
	elffile_close(f);
	buf_free(&out);
	return 0;
}
