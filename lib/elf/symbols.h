/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbols - the functions that some addresses of an ELF file are in, found
 * in one pass over its symbols.
 *
 * The rules are those of elfsym_*(), and so are the answers; but nothing is
 * sorted and nothing is kept: the tables go by in pieces, each symbol looks
 * for addresses inside it, and only the names that won are read. That
 * beats an index while symbols are four times the addresses or more; with fewer
 * symbols, and where they overlap without end, elfsym_*() answers instead. So the time
 * is bounded by O(symbols + addresses * log) for any file.
 */
#ifndef STACKTOOLS_ELF_SYMBOLS_H
#define STACKTOOLS_ELF_SYMBOLS_H

#include "elf/file.h"

#include <elf.h>
#include <endian.h>
#include <string.h>

/*
 * elfcode - the symbols of an ELF file that can name code, unsorted.
 *
 * Where .symtab and .dynsym are, what one entry says, and which executable
 * section an address is in: what elfsym_*() and elfmatch_*() are built from.
 * Format: System V ABI, chapter 4, "Symbol Table". The numbers are taken as they are: hostile.
 */

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

/*
 * elfsym - the functions of an ELF file, indexed by address.
 *
 * Built from .symtab and .dynsym into disjoint ranges, sorted, so that a
 * look-up is one binary search and never depends on what was asked before.
 * What a range names, where symbols overlap or share an address:
 *
 *   - Functions, indirect functions and untyped symbols of executable
 *     sections count; objects, sections, files and thread-local ones do not.
 *   - Of those that cover the address, the one that starts last: a function
 *     inside another one's range wins there, and the outer one again behind it.
 *   - Same start: a function over an untyped symbol, then the smaller one,
 *     then the first of the table (.symtab before .dynsym). ELF puts local
 *     symbols first in the table, so a local alias wins over the global
 *     ones, as with addr2line.
 *   - A symbol without a size counts only where no sized one covers, up to
 *     the next symbol or the end of its section.
 *   - Behind the end of a sized symbol there is no symbol.
 *
 * Every number in the tables is taken as hostile; symbols that lie outside
 * their section are cut to it, names outside the string table are dropped.
 */

struct elfsym;

struct elfsym_hit {
	uint64_t start; /* of the symbol, not of the range it was found in */
	const char *name; /* belongs to the table */
	uint32_t index; /* below elfsym_count(), one for each symbol */
	bool dynamic; /* from .dynsym */
};

/*
 * Index F's symbols; F may be closed afterwards. A file without symbol tables
 * gives an empty index. -EINVAL and the like with the message for tables that
 * cannot be read. Release *RET with elfsym_free(). O(n) in time; 12 bytes a
 * range beside the tables themselves.
 */
int elfsym_load(const struct elffile *f, struct elfsym **ret, struct err *e);
void elfsym_free(struct elfsym *s); /* NULL is fine */

/* The symbol at virtual address VADDR into *RET; false when there is none. */
bool elfsym_find(const struct elfsym *s, uint64_t vaddr, struct elfsym_hit *ret);

/*
 * For an address that elfsym_find() does not know, in a file that was
 * stripped of .symtab: the function that ends last before VADDR, if it is in
 * the same section. It may well be a local function behind that one that
 * VADDR belongs to; BEYOND, how many bytes behind the function's last one it lies (1
 * or more), tells how much to believe. False where a .symtab is there: it would name it.
 */
bool elfsym_before(const struct elfsym *s, uint64_t vaddr, struct elfsym_hit *ret, uint64_t *beyond);

size_t elfsym_count(const struct elfsym *s); /* symbols in both tables, used or not */
size_t elfsym_ranges(const struct elfsym *s); /* 0 = no function is known */

/* Ranges in order of address, for tests: false when I is past the last. */
bool elfsym_range(const struct elfsym *s, size_t i, uint64_t *start, uint64_t *end, struct elfsym_hit *ret);

struct elfmatch;

struct elfmatch_hit {
	const char *name; /* belongs to the match; NULL = no symbol */
	uint64_t start; /* of the symbol */
	/*
	 * 0: the symbol covers the address. Else the file was stripped of .symtab
	 * and this is the function before it (elfsym_before()), whose last byte is so many
	 * bytes before the address.
	 */
	uint64_t beyond;
	uint32_t index; /* one for each symbol */
	bool dynamic; /* from .dynsym */
};

/*
 * Match VADDRS (ascending; N may be 0). On success *RET is the caller's, and
 * F may be closed. -EINVAL and the like with the message for tables that cannot be read, as elfsym_load().
 */
int elfmatch_run(
	const struct elffile *f, const uint64_t *vaddrs, size_t n, struct elfmatch **ret, struct err *e);
void elfmatch_free(struct elfmatch *m); /* NULL is fine */

const struct elfmatch_hit *elfmatch_hits(const struct elfmatch *m); /* one for each address */
size_t elfmatch_symbols(const struct elfmatch *m); /* in both tables, used or not */
bool elfmatch_any(const struct elfmatch *m); /* is there any symbol that can name code? (N > 0) */

#endif
