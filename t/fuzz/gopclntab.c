/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): a Go program's table of functions and its
 * code, through the reader, the rows and the compiler. The input is two bytes
 * with the length of the table, the table, and the code; or a whole ELF file.
 * Kept inputs, those of unit/gopclntab in each version:
 *
 * 	obj/t/fuzz/gopclntab -max_total_time=60 t/data/go/corpus
 */
#include "../lib/go-made.h"
#include "elf/gopclntab.h"
#include "unwind/compile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_function(const struct gopclntab *t, size_t i)
{
	struct gopclntab_function fn, again;
	struct gopclntab_run r;
	const char *file;
	uint32_t line;

	if (!gopclntab_get(t, i, &fn))
		return;
	if (fn.start >= fn.end || !gopclntab_find(t, fn.start, &again) || again.start != fn.start)
		__builtin_trap();
	gopclntab_frames(t, &fn, &r);
	for (uint64_t at = fn.start; gopclntab_next(&r); at = r.end)
		if (r.start != at || r.end <= at)
			__builtin_trap();
	if (gopclntab_line(t, &fn, fn.start, &file, &line) && (!line || !*file))
		__builtin_trap();
}

static void check(const struct elffile *f)
{
	struct gopclntab *t = NULL;
	struct unwindtab view;
	uint8_t *bytes = NULL;
	size_t len;

	if (gopclntab_open(f, &t, NULL) > 0)
		for (size_t i = 0; i < gopclntab_count(t) && i < 64; i++)
			read_function(t, i);
	gopclntab_close(t);
	if (unwindcomp(f, &bytes, &len, NULL) != 0)
		return;
	if (unwindtab_view(bytes, len, &view, NULL) != 0)
		__builtin_trap();
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elffile *f = NULL;
	struct buf made = { 0 };
	size_t n;

	if (size >= 4 && memcmp(data, ELFMAG, 4) == 0) {
		buf_put(&made, data, size);
	} else if (size >= 2) {
		n = MIN((size_t)(data[0] | data[1] << 8), size - 2);
		go_file(&made, data + 2, n, data + 2 + n, size - 2 - n, &(struct go_more){ 0 });
	}
	if (made.len && elffile_image(made.p, made.len, &f, NULL) == 0)
		check(f);
	elffile_close(f);
	buf_free(&made);
	return 0;
}
