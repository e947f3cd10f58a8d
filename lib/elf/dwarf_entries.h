/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_entries - what an entry of .debug_info covers, and what it is called.
 */
#ifndef STACKTOOLS_ELF_DWARF_ENTRIES_H
#define STACKTOOLS_ELF_DWARF_ENTRIES_H

#include "base/intern.h"
#include "elf/dwarf_unit.h"

/*
 * dwrange - the addresses that an entry covers.
 *
 * DW_AT_low_pc with DW_AT_high_pc, or DW_AT_ranges: .debug_ranges (DWARF 4,
 * section 2.17.3) and .debug_rnglists (DWARF 5, section 2.17.3), directly or by
 * index, with base addresses.
 */

/* What the entries of one unit count from. */
struct dwbases {
	struct dwinfo *info; /* holds the entries and .debug_rnglists */
	struct dwinfo *main; /* holds .debug_addr and .debug_ranges: INFO, or the skeleton's file */
	struct dwunit *unit;
	uint64_t low; /* the unit's DW_AT_low_pc, 0 = none */
	uint64_t addr, lists, ranges; /* bases in the sections; DWINFO_UNKNOWN = none */
	uint64_t lowest; /* what begins below is no code of this file: the linker discarded it */
};

struct dwspan {
	uint64_t low, high; /* HIGH is the first address behind */
};

struct dwspans {
	struct dwspan *v;
	size_t n, cap;
};

/* Set what ROOT tells of B, whose first three and `lowest` are set. With SPLIT, ROOT is the
 * skeleton's, and the entries are in B's unit of B's info. */
void dwrange_bases(struct dwbases *b, const struct dwroot *root, bool split);

/*
 * RET becomes the ranges that are not empty, in the order of the file. 0,
 * -EINVAL when a list is malformed (what came before it is in RET), -ENOMEM.
 */
int dwrange_read(const struct dwbases *b, const struct dwvalue *low, const struct dwvalue *high,
	const struct dwvalue *ranges, struct dwspans *ret, struct err *e);

/*
 * dwname - how functions are called: an entry's own names or those that it
 * stands for.
 *
 * An instance says by DW_AT_abstract_origin, a definition by
 * DW_AT_specification, where the rest of it is (DWARF 5, sections 3.3.8 and
 * 2.13.2): in its unit, in another unit, in the alternate file. Such chains are followed for a
 * few steps, and each distinct entry once.
 */

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
