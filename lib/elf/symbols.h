/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbols - the functions that contain given addresses of an ELF file, found in
 * one pass over its symbols.
 *
 * The rules and the results are those of elfsym_*(), but nothing is sorted or
 * kept: it reads the symbol tables in pieces, checks for each symbol which
 * addresses are inside it, and reads only the names that were selected. This is
 * faster than an index if there are at least four times as many symbols as
 * addresses. With fewer symbols, or with too many overlaps, it uses elfsym_*()
 * instead. So the time is bounded by O(symbols + addresses * log) for any file.
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
 * Finds .symtab and .dynsym, decodes an entry, and finds the executable section
 * of an address. elfsym_*() and elfmatch_*() are built on it. Format: System V
 * ABI, chapter 4, "Symbol Table". The values of symbols are untrusted and not
 * checked here.
 */

/* A symbol table with its strings. */
struct elfcode_table {
	const struct elffile_section *syms, *strings; /* NULL = none */
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
 * F must outlive RET. A missing table has no symbols. -EINVAL for a table with
 * another entry size or without strings. Release RET->spans with
 * elfcode_spans_free(), even on failure.
 */
int elfcode_open(const struct elffile *f, struct elfcode *ret, struct err *e);

const char *elfcode_table_name(size_t k); /* ".symtab" for 0, ".dynsym" for 1 */

void elfcode_spans_free(struct elfcode_spans *s);

struct elfcode_symbol {
	uint64_t value, size;
	uint32_t name;
	uint16_t shndx;
	uint8_t type; /* STT_* */
	bool local; /* STB_LOCAL */
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
			.local = !(p[4] >> 4),
			.shndx = (uint16_t)(p[6] | p[7] << 8),
			.value = elfcode_le64(p + 8),
			.size = elfcode_le64(p + 16) };
	return (struct elfcode_symbol){ .name = elfcode_le32(p),
		.value = elfcode_le32(p + 4),
		.size = elfcode_le32(p + 8),
		.type = p[12] & 15,
		.local = !(p[12] >> 4),
		.shndx = (uint16_t)(p[14] | p[15] << 8) };
}

/*
 * Is Y a function or label that is defined in a section of F, and is its name
 * offset below STRINGS_LEN? Excludes labels in sections that are not loaded or
 * not executable (debug information for instance): their value is an offset in
 * the section, although it may look like an address.
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
 * Converts .symtab and .dynsym to sorted, disjoint ranges, so that a lookup is
 * one binary search and does not depend on earlier lookups. If symbols overlap
 * or share an address, these rules select the name of a range:
 *
 *   - Functions, indirect functions and untyped symbols of executable sections
 *     are used; objects, sections, files and thread-local symbols are not.
 *   - Of the symbols that cover the address, the one that starts last. A
 *     function inside the range of another one wins there; behind it the outer
 *     one applies again.
 *   - With the same start: a function over an untyped symbol, then the smaller
 *     one. Of aliases the public name: one that is not local ("select", not
 *     "__GI___select"), then with fewer underscores in front ("select", not
 *     "__select"; but "__vdso_time"), then the first in the table (.symtab before .dynsym).
 *   - A symbol without a size applies only where no symbol with a size covers,
 *     up to the next symbol or the end of its section. That it reaches so far is
 *     a guess, so a hit says whether the symbol has a size.
 *   - An address behind the end of a symbol with a size has no symbol.
 *
 * All values in the tables are untrusted: symbols that reach outside their
 * section are cut to it, and symbols whose names are outside the string table
 * are dropped.
 */

struct elfsym;

struct elfsym_hit {
	uint64_t start; /* of the symbol, not of the range that was found */
	const char *name; /* owned by the table */
	uint32_t index; /* identifies the symbol, below elfsym_count() */
	bool sized; /* else it is the last symbol before the address, and nothing says where it ends */
	bool dynamic; /* from .dynsym */
};

/*
 * Index the symbols of F, which may be closed afterwards. A file without symbol
 * tables gives an empty index. -EINVAL etc. with the message for tables that
 * cannot be read. Release *RET with elfsym_free(). O(n) time; 12 bytes for each
 * range in addition to the tables.
 */
int elfsym_load(const struct elffile *f, struct elfsym **ret, struct err *e);
void elfsym_free(struct elfsym *s); /* NULL is fine */

/* Find the symbol at virtual address VADDR. Returns false if there is none. */
bool elfsym_find(const struct elfsym *s, uint64_t vaddr, struct elfsym_hit *ret);

size_t elfsym_count(const struct elfsym *s); /* number of symbols in both tables, used or not */
size_t elfsym_ranges(const struct elfsym *s); /* 0 = no functions */

/* Range I in order of address, for tests. Returns false if I is past the last one. */
bool elfsym_range(const struct elfsym *s, size_t i, uint64_t *start, uint64_t *end, struct elfsym_hit *ret);

struct elfmatch;

struct elfmatch_hit {
	const char *name; /* owned by the match; NULL = no symbol */
	uint64_t start; /* of the symbol */
	uint32_t index; /* identifies the symbol */
	bool sized; /* as in elfsym_hit */
	bool dynamic; /* from .dynsym */
};

/*
 * Match VADDRS (ascending; N may be 0). On success the caller owns *RET, and F
 * may be closed. -EINVAL etc. with the message for tables that cannot be read,
 * as elfsym_load().
 */
int elfmatch_run(
	const struct elffile *f, const uint64_t *vaddrs, size_t n, struct elfmatch **ret, struct err *e);
void elfmatch_free(struct elfmatch *m); /* NULL is fine */

const struct elfmatch_hit *elfmatch_hits(const struct elfmatch *m); /* one for each address */
size_t elfmatch_symbols(const struct elfmatch *m); /* number of symbols in both tables, used or not */
bool elfmatch_any(const struct elfmatch *m); /* does any symbol name code? (N > 0) */

#endif
