/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/elfnote.h"
#include "base/bytes.h"

#include <elf.h>

/* What is left to the next multiple of ALIGN, counted from START; at the end of all, what there is. */
static void skip_padding(struct rd *r, const uint8_t *start, size_t align)
{
	size_t over = (size_t)(r->p - start) % align;

	rd_bytes(r, MIN(over ? align - over : 0, rd_left(r)));
}

bool elfnote_build_id(const void *notes, size_t len, uint64_t align, struct cap_build_id *ret)
{
	const size_t unit = align == 8 ? 8 : 4;
	struct rd r = rd_init(notes, len);

	while (rd_left(&r) >= sizeof(Elf64_Nhdr)) {
		const uint8_t *start = r.p;
		uint32_t namesz = rd_u32(&r), descsz = rd_u32(&r), type = rd_u32(&r);
		const char *name = rd_bytes(&r, namesz);
		const void *desc;

		skip_padding(&r, start, unit);
		desc = rd_bytes(&r, descsz);
		if (r.bad)
			return false;
		if (type == NT_GNU_BUILD_ID && namesz == 4 && memcmp(name, "GNU", 4) == 0 && descsz &&
			descsz <= CAP_BUILD_ID_MAX) {
			ret->len = (uint8_t)descsz;
			memcpy(ret->bytes, desc, descsz);
			return true;
		}
		skip_padding(&r, start, unit);
	}
	return false;
}
