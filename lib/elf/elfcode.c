/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/elfcode.h"

#include <errno.h>

#define SYMBOLS_MAX (UINT32_MAX / 4)

const char *elfcode_table_name(size_t k)
{
	return k == 0 ? ".symtab" : ".dynsym";
}

static int find_table(const struct elffile *f, size_t k, struct elfcode_table *t, struct err *e)
{
	const char *what = elfcode_table_name(k);
	const struct elffile_section *sec = NULL;

	for (size_t i = 0; i < f->n_sections && !sec; i++)
		if (f->sections[i].type == (k == 0 ? SHT_SYMTAB : SHT_DYNSYM))
			sec = &f->sections[i];
	if (!sec) /* a debug file keeps the header of .dynsym as NOBITS: absent too */
		return 0;
	if (sec->entsize != elfcode_symbol_size(f->is64))
		return err_set(e, -EINVAL, "its %s has entries of %llu bytes", what,
			(unsigned long long)sec->entsize);
	if (sec->link >= f->n_sections || f->sections[sec->link].type != SHT_STRTAB)
		return err_set(e, -EINVAL, "its %s has no string table", what);
	if (sec->size / sec->entsize > SYMBOLS_MAX)
		return err_set(e, -EINVAL, "its %s claims too many symbols", what);
	*t = (struct elfcode_table){ sec, &f->sections[sec->link], sec->size / sec->entsize };
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct elfcode_span *x = a, *y = b;

	return CMP(x->start, y->start);
}

static int find_spans(const struct elffile *f, struct elfcode_spans *ret, struct err *e)
{
	ret->p = calloc(f->n_sections + 1, sizeof(*ret->p));
	if (!ret->p)
		return err_nomem(e, "sections");
	for (size_t i = 0; i < f->n_sections; i++) {
		const struct elffile_section *s = &f->sections[i];

		if ((s->flags & SHF_ALLOC) && (s->flags & SHF_EXECINSTR) && s->size &&
			s->addr <= UINT64_MAX - s->size)
			ret->p[ret->n++] = (struct elfcode_span){ s->addr, s->addr + s->size };
	}
	qsort(ret->p, ret->n, sizeof(*ret->p), by_start);
	for (size_t i = 1; i < ret->n; i++) /* no address is in two of them */
		ret->p[i - 1].end = MIN(ret->p[i - 1].end, ret->p[i].start);
	return 0;
}

int elfcode_open(const struct elffile *f, struct elfcode *ret, struct err *e)
{
	int rc = 0;

	*ret = (struct elfcode){ .f = f };
	for (size_t k = 0; k < ARRAY_LEN(ret->tables) && rc == 0; k++)
		rc = find_table(f, k, &ret->tables[k], e);
	return rc ? rc : find_spans(f, &ret->spans, e);
}

void elfcode_spans_free(struct elfcode_spans *s)
{
	free(s->p);
	*s = (struct elfcode_spans){ 0 };
}

const struct elfcode_span *elfcode_spans_find(const struct elfcode_spans *s, uint64_t addr)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->p[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr < s->p[lo - 1].end ? &s->p[lo - 1] : NULL;
}
