/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/reloc.h"
#include "elf/section.h"
#include "elf/symbols.h"

#include <errno.h>

#define LAYOUT_BASE UINT64_C(0x100000) /* in debug information, 0 is the address of discarded code */
#define LAYOUT_END (UINT64_C(1) << 40)
#define ALIGN_MAX (UINT64_C(1) << 21)
#define CHUNK 4096 /* relocations per read */

/* The sections for lines and inlined calls. */
static const char *const wanted[] = { ".debug_info", ".debug_types", ".debug_abbrev", ".debug_str",
	".debug_line", ".debug_line_str", ".debug_str_offsets", ".debug_addr", ".debug_ranges",
	".debug_rnglists" };

struct work {
	const struct elffile *f;
	struct elfsection_names names;
	struct elfsection *unpacked; /* by section; only of compressed ones */
	bool *taken; /* by section */
	struct elffile *to;
	uint8_t *bytes;
	const struct elffile_section *symtab; /* of TO; NULL = none */
};

bool elfrel_is(const struct elffile *f)
{
	return f->type == ET_REL;
}

static int place(const struct elffile_section *s, uint64_t *at, uint64_t *ret)
{
	const uint64_t align = s->align ? s->align : 1;

	if (align > ALIGN_MAX || align & (align - 1) || s->size >= LAYOUT_END)
		return -EINVAL;
	*ret = (*at + align - 1) & ~(align - 1);
	*at = *ret + s->size + 1;
	return *at > LAYOUT_END ? -EINVAL : 0;
}

int elfrel_layout(const struct elffile *f, uint64_t **ret, struct err *e)
{
	_cleanup_free_ uint64_t *addrs = calloc(f->n_sections + 1, sizeof(*addrs));
	uint64_t at = LAYOUT_BASE;

	if (!addrs)
		return err_nomem(e, "sections");
	for (size_t i = 0; i < f->n_sections; i++)
		if (f->sections[i].flags & SHF_ALLOC && place(&f->sections[i], &at, &addrs[i]) != 0)
			return err_set(e, -EINVAL, "has a section of a size or alignment that no module has");
	*ret = TAKE_PTR(addrs);
	return 0;
}

/* --- the new file --- */

/* Copy the section headers of F with their assigned addresses, without bytes yet. */
static int begin(struct work *w, struct err *e)
{
	const struct elffile *f = w->f;
	_cleanup_free_ uint64_t *addrs = NULL;
	int rc;

	if (!f->is64 || (f->machine != EM_X86_64 && f->machine != EM_AARCH64))
		return err_set(e, -EOPNOTSUPP, "is a relocatable file of a machine that is not known");
	rc = elfrel_layout(f, &addrs, e);
	rc = rc ? rc : elfsection_names(f, &w->names, e);
	if (rc)
		return rc;
	w->unpacked = calloc(f->n_sections + 1, sizeof(*w->unpacked));
	w->taken = calloc(f->n_sections + 1, sizeof(*w->taken));
	w->to = calloc(1, sizeof(*w->to));
	if (!w->unpacked || !w->taken || !w->to)
		return err_nomem(e, "sections");
	*w->to = *f;
	w->to->fd = -1;
	w->to->image = NULL;
	w->to->loads = NULL;
	w->to->n_loads = 0;
	w->to->sections = calloc(f->n_sections + 1, sizeof(*w->to->sections));
	if (!w->to->sections)
		return err_nomem(e, "sections");
	for (size_t i = 0; i < f->n_sections; i++) {
		struct elffile_section *s = &w->to->sections[i];

		*s = f->sections[i];
		s->addr = addrs[i];
		s->offset = 0;
		s->type = (s->flags & SHF_ALLOC) ? SHT_NOBITS : SHT_NULL;
	}
	return 0;
}

/* Section I keeps its bytes. */
static void take(struct work *w, size_t i)
{
	w->to->sections[i].type = w->f->sections[i].type;
	w->taken[i] = true;
}

static int take_debug(struct work *w, const char *name, uint64_t max, struct err *e)
{
	bool packed = false;
	const struct elffile_section *s = elfsection_find(w->f, &w->names, name, &packed);
	size_t i;
	int rc;

	if (!s)
		return 0;
	i = (size_t)(s - w->f->sections);
	if (s->flags & SHF_ALLOC)
		return err_set(e, -EINVAL, "its %s would be loaded", name);
	if (packed &&
		!(s->flags & SHF_COMPRESSED)) /* .zdebug_*: the name would still say that it is compressed */
		return err_set(e, -EOPNOTSUPP, "its %s is compressed in the old way", name);
	take(w, i);
	if (!packed)
		return 0;
	rc = elfsection_load(w->f, &w->names, name, max, &w->unpacked[i], e);
	if (rc < 0)
		return rc;
	w->to->sections[i].flags &= ~(uint64_t)SHF_COMPRESSED;
	w->to->sections[i].size = w->unpacked[i].len;
	return 0;
}

/* The string table may also be the section name table. */
static int take_symbols(struct work *w, struct err *e)
{
	struct elfcode code;
	int rc = elfcode_open(w->f, &code, e);
	const struct elfcode_table *t = &code.tables[0];

	elfcode_spans_free(&code.spans);
	if (rc || !t->syms)
		return rc;
	if ((t->syms->flags | t->strings->flags) & (SHF_ALLOC | SHF_COMPRESSED))
		return err_set(e, -EINVAL, "its symbols would be loaded, or are compressed");
	take(w, (size_t)(t->syms - w->f->sections));
	take(w, (size_t)(t->strings - w->f->sections));
	w->symtab = &w->to->sections[t->syms - w->f->sections];
	return 0;
}

static int take_all(struct work *w, uint64_t max, struct err *e)
{
	int rc = take_symbols(w, e);

	if (w->f->names < w->f->n_sections && w->f->sections[w->f->names].type == SHT_STRTAB)
		take(w, w->f->names);
	for (size_t i = 0; i < ARRAY_LEN(wanted) && rc == 0; i++)
		rc = take_debug(w, wanted[i], max, e);
	return rc;
}

/* Set the offset of each section, and allocate memory for all. */
static int arrange(struct work *w, uint64_t max, struct err *e)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->f->n_sections; i++) {
		struct elffile_section *s = &w->to->sections[i];

		if (!w->taken[i])
			continue;
		if (!w->unpacked[i].bytes && s->size > w->f->size)
			return err_set(e, -EINVAL, "has a section that points outside the file");
		if (s->size > max - sum)
			return err_set(
				e, -E2BIG, "takes more than %llu bytes to relocate", (unsigned long long)max);
		s->offset = sum;
		sum += s->size;
	}
	w->bytes = malloc(sum + 1);
	if (!w->bytes)
		return err_nomem(e, "a relocatable file");
	w->to->image = w->bytes;
	w->to->size = sum;
	return 0;
}

static int fill(struct work *w, struct err *e)
{
	for (size_t i = 0; i < w->f->n_sections; i++) {
		const struct elffile_section *s = &w->to->sections[i];
		int rc = 0;

		if (w->unpacked[i].bytes)
			memcpy(w->bytes + s->offset, w->unpacked[i].bytes, s->size);
		else if (w->taken[i])
			rc = elffile_read_at(
				w->f, w->f->sections[i].offset, w->bytes + s->offset, s->size, e);
		elfsection_free(&w->unpacked[i]);
		if (rc)
			return err_prefix(e, "a section"), rc;
	}
	return 0;
}

/* --- relocation --- */

/* The number of bytes that an absolute relocation writes; 0 = another kind. */
static size_t width_of(uint16_t machine, uint32_t type)
{
	if (machine == EM_AARCH64)
		return type == R_AARCH64_ABS64 ? 8 : type == R_AARCH64_ABS32 ? 4 : 0;
	return type == R_X86_64_64 ? 8 : type == R_X86_64_32 || type == R_X86_64_32S ? 4 : 0;
}

/* The address of symbol NUMBER; 0 if this file does not define it. */
static int value_of(const struct work *w, uint32_t number, uint64_t *ret, struct err *e)
{
	const size_t size = sizeof(Elf64_Sym);
	struct elfcode_symbol y;

	*ret = 0;
	if (!number)
		return 0;
	if (!w->symtab || number >= w->symtab->size / size)
		return err_set(
			e, -EINVAL, "a relocation refers to symbol %u, which it does not have", number);
	y = elfcode_symbol(true, w->bytes + w->symtab->offset + number * size);
	if (y.shndx == SHN_UNDEF || y.shndx == SHN_COMMON)
		return 0;
	if (y.shndx != SHN_ABS && (y.shndx >= SHN_LORESERVE || y.shndx >= w->f->n_sections))
		return err_set(
			e, -EINVAL, "a relocation refers to section %u, which it does not have", y.shndx);
	*ret = y.value + (y.shndx == SHN_ABS ? 0 : w->to->sections[y.shndx].addr);
	return 0;
}

static int apply(struct work *w, const struct elffile_section *to, const uint8_t *entry, struct err *e)
{
	const uint64_t at = elfcode_le64(entry), info = elfcode_le64(entry + 8);
	const uint32_t type = (uint32_t)info;
	const size_t width = width_of(w->f->machine, type);
	uint64_t value;
	int rc;

	if (!type) /* R_*_NONE of both machines */
		return 0;
	if (!width)
		return err_set(e, -EOPNOTSUPP, "has a relocation of type %u in debug information", type);
	if (at > to->size || width > to->size - at)
		return err_set(e, -EINVAL, "has a relocation outside of its section");
	rc = value_of(w, (uint32_t)(info >> 32), &value, e);
	if (rc)
		return rc;
	value += elfcode_le64(entry + 16);
	if (width == 4 && value > UINT32_MAX)
		return err_set(e, -EINVAL, "has a relocation that does not fit");
	value = htole64(value);
	memcpy(w->bytes + to->offset + at, &value, width);
	return 0;
}

/* Apply the relocations in FROM to TO, in pieces: they take more memory than what they change. */
static int relocate(
	struct work *w, const struct elffile_section *to, const struct elffile_section *from, struct err *e)
{
	const size_t size = sizeof(Elf64_Rela);
	_cleanup_free_ uint8_t *chunk = NULL;
	const uint64_t n = from->size / size;
	int rc = 0;

	if (from->entsize != size || from->flags & SHF_COMPRESSED || !w->symtab ||
		from->link != (size_t)(w->symtab - w->to->sections))
		return err_set(e, -EINVAL, "has relocations that are malformed");
	if (from->offset > w->f->size || from->size > w->f->size - from->offset)
		return err_set(e, -EINVAL, "has relocations that point outside the file");
	chunk = malloc(CHUNK * size);
	if (!chunk)
		return err_nomem(e, "relocations");
	for (uint64_t done = 0; done < n && rc == 0;) {
		const uint64_t stop = n - done > CHUNK ? done + CHUNK : n;

		rc = elffile_read_at(w->f, from->offset + done * size, chunk, (stop - done) * size, e);
		for (const uint8_t *p = chunk; done < stop && rc == 0; done++, p += size)
			rc = apply(w, to, p, e);
	}
	return rc;
}

/*
 * Applies one relocation table for each section. More tables could refer to the
 * same bytes again and again.
 */
static int relocate_all(struct work *w, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < w->f->n_sections && rc == 0; i++) {
		const struct elffile_section *from = &w->f->sections[i];

		if ((from->type != SHT_RELA && from->type != SHT_REL) || from->info >= w->f->n_sections ||
			!w->taken[from->info] || w->to->sections[from->info].type != SHT_PROGBITS)
			continue;
		if (from->type == SHT_REL)
			return err_set(e, -EOPNOTSUPP, "has relocations without addends");
		w->taken[from->info] = false;
		rc = relocate(w, &w->to->sections[from->info], from, e);
	}
	return rc;
}

/*
 * Add the section addresses to the symbols. Only after relocation, which
 * expects values relative to the sections.
 */
static void move_symbols(struct work *w)
{
	const size_t size = sizeof(Elf64_Sym);

	for (uint64_t i = 0; w->symtab && i < w->symtab->size / size; i++) {
		uint8_t *p = w->bytes + w->symtab->offset + i * size;
		const struct elfcode_symbol y = elfcode_symbol(true, p);
		const bool here =
			y.shndx != SHN_UNDEF && y.shndx < SHN_LORESERVE && y.shndx < w->f->n_sections;
		const uint64_t value = htole64(y.value + (here ? w->to->sections[y.shndx].addr : 0));

		memcpy(p + offsetof(Elf64_Sym, st_value), &value, sizeof(value));
	}
}

static void end(struct work *w)
{
	for (size_t i = 0; w->unpacked && i < w->f->n_sections; i++)
		elfsection_free(&w->unpacked[i]);
	elfsection_names_free(&w->names);
	elffile_close(w->to);
	free(w->unpacked);
	free(w->taken);
	free(w->bytes);
}

int elfrel_open(const struct elffile *f, uint64_t max_bytes, struct elfrel *ret, struct err *e)
{
	CLEANUP(end) struct work w = { .f = f };
	int rc = begin(&w, e);

	*ret = (struct elfrel){ 0 };
	rc = rc ? rc : take_all(&w, max_bytes, e);
	rc = rc ? rc : arrange(&w, max_bytes, e);
	rc = rc ? rc : fill(&w, e);
	rc = rc ? rc : relocate_all(&w, e);
	if (rc)
		return rc;
	move_symbols(&w);
	ret->elf = TAKE_PTR(w.to);
	ret->bytes = TAKE_PTR(w.bytes);
	return 0;
}

void elfrel_close(struct elfrel *r)
{
	elffile_close(r->elf);
	free(r->bytes);
	*r = (struct elfrel){ 0 };
}
