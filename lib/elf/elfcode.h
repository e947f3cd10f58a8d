/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elfcode - the symbols of an ELF file that can name code, unsorted.
 *
 * Where .symtab and .dynsym are, what one entry says, and which executable
 * section an address is in: what elfsym.h and elfmatch.h are built from.
 * Format: System V ABI, chapter 4, "Symbol Table". The numbers are taken as they are: hostile.
 */
#ifndef STACKTOOLS_ELFCODE_H
#define STACKTOOLS_ELFCODE_H

#include "elf/elffile.h"

#include <elf.h>
#include <endian.h>
#include <string.h>

/* A symbol table with its strings. */
struct elfcode_table {
	const struct elffile_section *syms, *strings; /* NULL = there is none */
	size_t n;
};

/* An executable section. */
struct elfcode_span {
	uint64_t start, end;
};

struct elfcode_spans {
	struct elfcode_span *p; /* ascending by start, disjoint */
	size_t n;
};

struct elfcode {
	const struct elffile *f;
	struct elfcode_table tables[2]; /* .symtab, .dynsym */
	struct elfcode_spans spans;
};

/*
 * F must stay. Tables that are absent have no symbols; -EINVAL for one of
 * another entry size or without strings. Release RET->spans with elfcode_spans_free(), on failure too.
 */
int elfcode_open(const struct elffile *f, struct elfcode *ret, struct err *e);

const char *elfcode_table_name(size_t k); /* ".symtab" for 0, ".dynsym" for 1 */

void elfcode_spans_free(struct elfcode_spans *s);

/* The section that ADDR is in, or NULL. O(log n). */
const struct elfcode_span *elfcode_spans_find(const struct elfcode_spans *s, uint64_t addr);

struct elfcode_symbol {
	uint64_t value, size;
	uint32_t name;
	uint16_t shndx;
	uint8_t type; /* STT_* */
};

static inline size_t elfcode_symbol_size(bool is64)
{
	return is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

static inline uint32_t elfcode_le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline uint64_t elfcode_le64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/* Layouts of Elf64_Sym and Elf32_Sym; P has elfcode_symbol_size() bytes. */
static inline struct elfcode_symbol elfcode_symbol(bool is64, const uint8_t *p)
{
	if (is64)
		return (struct elfcode_symbol){ .name = elfcode_le32(p),
			.type = p[4] & 15,
			.shndx = (uint16_t)(p[6] | p[7] << 8),
			.value = elfcode_le64(p + 8),
			.size = elfcode_le64(p + 16) };
	return (struct elfcode_symbol){ .name = elfcode_le32(p),
		.value = elfcode_le32(p + 4),
		.size = elfcode_le32(p + 8),
		.type = p[12] & 15,
		.shndx = (uint16_t)(p[14] | p[15] << 8) };
}

/*
 * A function or a label that is defined in a section of F, whose name may lie within STRINGS_LEN bytes. A
 * label in a section of no code or of none that is loaded, such as one of debug information, has an offset
 * there as its value, which is no address although it may look like one.
 */
static inline bool elfcode_names_code(
	const struct elffile *f, const struct elfcode_symbol *y, size_t strings_len)
{
	if (y->type != STT_FUNC && y->type != STT_GNU_IFUNC && y->type != STT_NOTYPE)
		return false;
	if (y->shndx == SHN_UNDEF || (y->shndx >= SHN_LORESERVE && y->shndx != SHN_XINDEX))
		return false;
	if (y->shndx < f->n_sections && (~f->sections[y->shndx].flags & (SHF_ALLOC | SHF_EXECINSTR)))
		return false;
	return y->name && y->name < strings_len;
}

#endif
