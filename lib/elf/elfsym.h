/* SPDX-License-Identifier: GPL-2.0-or-later */
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
#ifndef STACKTOOLS_ELFSYM_H
#define STACKTOOLS_ELFSYM_H

#include "elf/elffile.h"

struct elfsym;

struct elfsym_hit {
	uint64_t start; /* of the symbol, not of the range it was found in */
	const char *name; /* belongs to the table */
	uint32_t index; /* below elfsym_count(), one for each symbol */
	bool dynamic; /* from .dynsym */
};

/*
 * Index F's symbols; F may be closed afterwards. A file without symbol tables
 * gives an empty index. -EINVAL and the like with the story for tables that
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

#endif
