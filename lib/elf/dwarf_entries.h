/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_entries - what an entry of .debug_info covers, and what it is called.
 */
#ifndef STACKTOOLS_ELF_DWARF_ENTRIES_H
#define STACKTOOLS_ELF_DWARF_ENTRIES_H

#include "base/intern.h"
#include "elf/dwarf_unit.h"

/*
 * dwarf_range - the addresses that an entry covers.
 *
 * DW_AT_low_pc with DW_AT_high_pc, or DW_AT_ranges: .debug_ranges (DWARF 4,
 * section 2.17.3) and .debug_rnglists (DWARF 5, section 2.17.3), directly or by
 * index, with base addresses.
 */

/* What the entries of one unit count from. */
struct dwarf_bases {
	struct dwarf_info *info; /* holds the entries and .debug_rnglists */
	struct dwarf_info *main; /* holds .debug_addr and .debug_ranges: INFO, or the skeleton's file */
	struct dwarf_unit *unit;
	uint64_t low; /* the unit's DW_AT_low_pc, 0 = none */
	uint64_t addr, lists, ranges; /* bases in the sections; DWARF_INFO_UNKNOWN = none */
	uint64_t lowest; /* what begins below is no code of this file: the linker discarded it */
};

struct dwarf_span {
	uint64_t low, high; /* HIGH is the first address behind */
};

struct dwarf_span_list {
	struct dwarf_span *v;
	size_t n, cap;
};

/* Set what ROOT tells of B, whose first three and `lowest` are set. With SPLIT, ROOT is the
 * skeleton's, and the entries are in B's unit of B's info. */
void dwarf_range_bases(struct dwarf_bases *b, const struct dwarf_root *root, bool split);

/*
 * RET becomes the ranges that are not empty, in the order of the file. 0,
 * -EINVAL when a list is malformed (what came before it is in RET), -ENOMEM.
 */
int dwarf_range_read(const struct dwarf_bases *b, const struct dwarf_value *low,
	const struct dwarf_value *high, const struct dwarf_value *ranges, struct dwarf_span_list *ret,
	struct err *e);

/*
 * dwarf_name - how functions are called: an entry's own names or those that it
 * stands for.
 *
 * An instance says by DW_AT_abstract_origin, a definition by
 * DW_AT_specification, where the rest of it is (DWARF 5, sections 3.3.8 and
 * 2.13.2): in its unit, in another unit, in the alternate file. Such chains are followed for a
 * few steps, and each distinct entry once.
 */

struct dwarf_name {
	const char *name; /* DW_AT_name, NULL = none */
	const char *linkage; /* DW_AT_linkage_name, NULL = none */
	bool alt_missing; /* the chain leads into an alternate file that is not there */
};

#define DWARF_CALL_NO_FILE UINT32_MAX

/* From where an inlined function is called; file as in the unit's line table. */
struct dwarf_call {
	uint32_t file, line, column;
};

struct dwarf_name_chunk;

struct dwarf_name_table {
	struct dwarf_info *alt; /* NULL = none */
	struct idmap known; /* file and offset to index in LIST */
	struct dwarf_name *list;
	size_t n, cap;
	struct dwarf_name_chunk *chunks; /* strings that stood in entries */
	uint64_t bytes;
	struct dwarf_piece piece;
};

void dwarf_name_table_free(struct dwarf_name_table *n); /* a zeroed one is empty; set ALT */

/*
 * The names and the call of the entry whose values are to be taken from R (in unit U of D, with
 * table T, behind its code). Strings are valid until dwarf_name_table_free() or the file's close.
 */
void dwarf_name_table_of_entry(struct dwarf_name_table *n, struct dwarf_info *d, struct dwarf_unit *u,
	const struct dwarf_abbrev_table *t, const struct dwarf_abbrev *a, struct rd r, struct dwarf_name *ret,
	struct dwarf_call *call);

#endif
