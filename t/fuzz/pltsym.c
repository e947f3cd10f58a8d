/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as an ELF file, through the reader
 * of PLT stubs and the matcher of symbols. Matcher and index must give the same
 * results.
 */
#include "elf/plt.h"
#include "elf/symbols.h"

#define ADDRS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Some addresses in every section, and those around the ranges of S. */
static size_t choose(const struct elffile *f, const struct elfsym *s, uint64_t *to)
{
	struct elfsym_hit hit;
	uint64_t start, end;
	size_t n = 0;

	for (size_t i = 0; i < f->n_sections && n < ADDRS / 2; i++)
		to[n++] = f->sections[i].addr + f->sections[i].size / 2;
	for (size_t i = 0; n + 2 <= ADDRS && elfsym_range(s, i, &start, &end, &hit); i++) {
		to[n++] = start;
		to[n++] = end - 1;
	}
	return n;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return CMP(*x, *y);
}

static void compare(const struct elfsym *s, const uint64_t *vaddrs, size_t n, const struct elfmatch_hit *hits)
{
	for (size_t i = 0; i < n; i++) {
		struct elfsym_hit hit;
		bool found = elfsym_find(s, vaddrs[i], &hit);

		if (found != (hits[i].name != NULL) ||
			(found && (hit.start != hits[i].start || hit.sized != hits[i].sized)))
			abort();
	}
}

static void run(const struct elffile *f)
{
	uint64_t vaddrs[ADDRS];
	struct elfmatch *m = NULL;
	struct elfsym *s = NULL;
	struct pltsym *p = NULL;
	struct pltsym_hit hit;
	size_t n;

	if (pltsym_load(f, NULL, 0, &p, NULL) == 0)
		for (size_t i = 0; pltsym_stub(p, i, &hit); i++)
			if (hit.end <= hit.start || hit.name[hit.name_len] != '@')
				abort();
	pltsym_free(p);
	if (elfsym_load(f, &s, NULL) != 0)
		return;
	n = choose(f, s, vaddrs);
	qsort(vaddrs, n, sizeof(*vaddrs), by_value);
	for (size_t i = 0; i < n; i++) {
		if (elfmatch_run(f, vaddrs + i, 1, &m, NULL) == 0)
			compare(s, vaddrs + i, 1, elfmatch_hits(m));
		elfmatch_free(m);
		m = NULL;
	}
	if (elfmatch_run(f, vaddrs, n, &m, NULL) == 0)
		compare(s, vaddrs, n, elfmatch_hits(m));
	elfmatch_free(m);
	elfsym_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elffile *f = NULL;

	if (elffile_image(data, len, &f, NULL) == 0)
		run(f);
	elffile_close(f);
	return 0;
}
