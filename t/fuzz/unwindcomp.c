/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): call frame information, or a whole ELF file
 * if the input begins like one, through the compiler of rows and the search for
 * FDEs. Kept inputs:
 *
 * 	obj/t/fuzz/unwindcomp -max_total_time=60 t/data/cfi/corpus
 */
#include "../data/cfi/image.h"
#include "unwind/compile.h"
#include "unwind/fde.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A table must be accepted, and searching it must be safe. */
static void check(const struct elffile *f)
{
	struct unwindtab t;
	uint8_t *bytes = NULL;
	size_t len;
	uint64_t start, end;

	if (unwindcomp(f, &bytes, &len, NULL) != 0)
		return;
	if (unwindtab_view(bytes, len, &t, NULL) != 0)
		__builtin_trap();
	for (uint64_t i = 0; i < t.head->n_segs && i < 256; i++)
		if (!unwindtab_find(&t, t.head->vaddr + (i << UNWIND_SEG_SHIFT) + 0x123, &start, &end) ||
			start >= end)
			__builtin_trap();
	free(bytes);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return CMP(*x, *y);
}

/* A range must have its address. */
static void find_fdes(const struct elffile *f)
{
	uint64_t vaddrs[64];
	struct fde_range ranges[ARRAY_LEN(vaddrs)];

	for (size_t i = 0; i < ARRAY_LEN(vaddrs); i++)
		vaddrs[i] = i < 32 ? i * i * i * 8 : f->eh_frame_hdr + (i - 48) * 64;
	qsort(vaddrs, ARRAY_LEN(vaddrs), sizeof(*vaddrs), by_value);
	if (fde_ranges(f, f, vaddrs, ARRAY_LEN(vaddrs), 1 << 24, ranges, NULL) != 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(vaddrs); i++)
		if (ranges[i].end && (vaddrs[i] < ranges[i].start || vaddrs[i] >= ranges[i].end))
			__builtin_trap();
}

static void as_file(const void *data, size_t size)
{
	struct elffile *f = NULL;

	if (elffile_image(data, size, &f, NULL) == 0) {
		check(f);
		find_fdes(f);
	}
	elffile_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 4 && memcmp(data, ELFMAG, 4) == 0) {
		as_file(data, size);
		return 0;
	}
	for (unsigned int way = 0; way < 5; way++) {
		const struct image_opts o = {
			.debug = way == 1 || way == 4, .no_sections = way == 2, .narrow = way >= 3
		};
		struct buf image = { 0 };

		image_make(&image, data, size, &o);
		as_file(image.p, image.len);
		buf_free(&image);
	}
	return 0;
}
