/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as an ELF file with debug
 * information that is also its own alternate file and its own .dwo. Its seeds
 * are small programs built with -g.
 */
#include "elf/dwarf.h"

#include <string.h>

#define N 256
#define MAX_BYTES (64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* All reported strings must be readable; each address is reported once. */
static void count_hit(void *ctx, const struct dwarf_lookup_hit *hit)
{
	uint8_t *reported = ctx;
	volatile size_t sum = 0;

	if (hit->index >= N || reported[hit->index]++)
		abort();
	for (size_t i = 0; i < hit->n; i++) {
		const struct dwarf_lookup_frame *f = &hit->frames[i];

		sum += (f->name ? strlen(f->name) : 0) + (f->linkage ? strlen(f->linkage) : 0) +
		       (f->file ? strlen(f->file) : 0);
	}
}

static void look_up(struct dwarf_lookup_opts *o)
{
	uint8_t reported[N] = { 0 };
	uint64_t at[N];
	struct dwarf_lookup *d = NULL;

	for (uint64_t i = 0; i < N; i++)
		at[i] = i < N / 2 ? 0x1000 + i * 4 : i * i * i << 3;
	if (dwarf_lookup_open(o, &d, NULL) == 0)
		dwarf_lookup_run(d, at, N, count_hit, NULL, reported, NULL);
	dwarf_lookup_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elffile *f = NULL;
	struct dwarf_lookup_dwo dwo;
	struct dwarf_lookup_opts o = { .inlines = true, .lines = true, .max_bytes = MAX_BYTES };

	if (elffile_image(data, len, &f, NULL) != 0)
		return 0;
	dwo = (struct dwarf_lookup_dwo){ .id = len, .file = f };
	o.elf = f;
	look_up(&o);
	o.alt = o.dwp = f;
	o.dwos = &dwo;
	o.n_dwos = 1;
	look_up(&o);
	elffile_close(f);
	return 0;
}
