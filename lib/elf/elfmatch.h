/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elfmatch - the functions that some addresses of an ELF file are in, found
 * in one pass over its symbols.
 *
 * The rules are those of elfsym.h, and so are the answers; but nothing is
 * sorted and nothing is kept: the tables go by in pieces, each symbol looks
 * for addresses inside it, and only the names that won are read. That
 * beats an index while symbols are four times the addresses or more; with fewer
 * symbols, and where they overlap without end, elfsym.h answers instead. So the time
 * is bounded by O(symbols + addresses * log) for any file.
 */
#ifndef STACKTOOLS_ELFMATCH_H
#define STACKTOOLS_ELFMATCH_H

#include "elf/elffile.h"

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
 * F may be closed. -EINVAL and the like with the story for tables that cannot be read, as elfsym_load().
 */
int elfmatch_run(
	const struct elffile *f, const uint64_t *vaddrs, size_t n, struct elfmatch **ret, struct err *e);
void elfmatch_free(struct elfmatch *m); /* NULL is fine */

const struct elfmatch_hit *elfmatch_hits(const struct elfmatch *m); /* one for each address */
size_t elfmatch_symbols(const struct elfmatch *m); /* in both tables, used or not */
bool elfmatch_any(const struct elfmatch *m); /* is there any symbol that can name code? (N > 0) */

#endif
