/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as an ELF file with debug information, which is its own alternate
 * file and its own .dwo too, for libFuzzer (`make fuzz`). Its seeds are small programs with -g.
 */
#include "elf/dwarf.h"

#include <string.h>

#define N 256
#define MAX_BYTES (64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Whatever is told must be readable; each address is told once. */
static void tell(void *ctx, const struct dwlook_hit *hit)
{
	uint8_t *told = ctx;
	volatile size_t sum = 0;

	if (hit->index >= N || told[hit->index]++)
		abort();
	for (size_t i = 0; i < hit->n; i++) {
		const struct dwlook_frame *f = &hit->frames[i];

		sum += (f->name ? strlen(f->name) : 0) + (f->linkage ? strlen(f->linkage) : 0) +
		       (f->file ? strlen(f->file) : 0);
	}
}

static void look(struct dwlook_opts *o)
{
	uint8_t told[N] = { 0 };
	uint64_t at[N];
	struct dwlook *d = NULL;

	for (uint64_t i = 0; i < N; i++)
		at[i] = i < N / 2 ? 0x1000 + i * 4 : i * i * i << 3;
	if (dwlook_open(o, &d, NULL) == 0)
		dwlook_run(d, at, N, tell, NULL, told, NULL);
	dwlook_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elffile *f = NULL;
	struct dwlook_dwo dwo;
	struct dwlook_opts o = { .inlines = true, .lines = true, .max_bytes = MAX_BYTES };

	if (elffile_image(data, len, &f, NULL) != 0)
		return 0;
	dwo = (struct dwlook_dwo){ .id = len, .file = f };
	o.elf = f;
	look(&o);
	o.alt = o.dwp = f;
	o.dwos = &dwo;
	o.n_dwos = 1;
	look(&o);
	elffile_close(f);
	return 0;
}
