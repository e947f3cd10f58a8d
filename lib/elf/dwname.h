/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwname - how functions are called: an entry's own names or those that it
 * stands for.
 *
 * An instance says by DW_AT_abstract_origin, a definition by
 * DW_AT_specification, where the rest of it is (DWARF 5, sections 3.3.8 and
 * 2.13.2): in its unit, in another unit, in the alternate file. Such chains are followed for a
 * few steps, and each distinct entry once.
 */
#ifndef STACKTOOLS_DWNAME_H
#define STACKTOOLS_DWNAME_H

#include "base/intern.h"
#include "elf/dwinfo.h"

struct dwname {
	const char *name; /* DW_AT_name, NULL = none */
	const char *linkage; /* DW_AT_linkage_name, NULL = none */
	bool alt_missing; /* the chain leads into an alternate file that is not there */
};

#define DWCALL_NO_FILE UINT32_MAX

/* From where an inlined function is called; file as in the unit's line table. */
struct dwcall {
	uint32_t file, line, column;
};

struct dwname_chunk;

struct dwnames {
	struct dwinfo *alt; /* NULL = none */
	struct idmap known; /* file and offset to index in LIST */
	struct dwname *list;
	size_t n, cap;
	struct dwname_chunk *chunks; /* strings that stood in entries */
	uint64_t bytes;
	struct dwpiece piece;
};

void dwnames_free(struct dwnames *n); /* a zeroed one is empty; set ALT */

/*
 * The names and the call of the entry whose values are to be taken from R (in unit U of D, with
 * table T, behind its code). Strings are valid until dwnames_free() or the file's close.
 */
void dwnames_of_entry(struct dwnames *n, struct dwinfo *d, struct dwunit *u, const struct dwabbrev_table *t,
	const struct dwabbrev *a, struct rd r, struct dwname *ret, struct dwcall *call);

#endif
