/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_entries - the address ranges and the names of an entry of .debug_info.
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

/* The bases of the values in one unit. */
struct dwarf_bases {
	struct dwarf_info *info; /* holds the entries and .debug_rnglists */
	struct dwarf_info *main; /* holds .debug_addr and .debug_ranges: INFO, or the skeleton's file */
	struct dwarf_unit *unit;
	uint64_t low; /* the unit's DW_AT_low_pc, 0 = none */
	uint64_t addr, lists, ranges; /* bases in the sections; DWARF_INFO_UNKNOWN = none */
	uint64_t lowest; /* ranges that begin below are not code of this file: the linker discarded it */
};

struct dwarf_span {
	uint64_t low, high; /* HIGH is exclusive */
};

struct dwarf_span_list {
	struct dwarf_span *v;
	size_t n, cap;
};

/*
 * Set the fields of B that ROOT gives. The caller has set the first three and
 * `lowest`. With SPLIT, ROOT is that of the skeleton, and the entries are in
 * B's unit of B's info.
 */
void dwarf_range_bases(struct dwarf_bases *b, const struct dwarf_root *root, bool split);

/*
 * Set RET to the ranges that are not empty, in the order of the file. 0,
 * -EINVAL if a list is malformed (RET has the ranges before the error),
 * -ENOMEM.
 */
int dwarf_range_read(const struct dwarf_bases *b, const struct dwarf_value *low,
	const struct dwarf_value *high, const struct dwarf_value *ranges, struct dwarf_span_list *ret,
	struct err *e);

/*
 * dwarf_name - the names of functions: an entry's own or those that it refers
 * to.
 *
 * The rest of an instance is where DW_AT_abstract_origin points, that of a
 * definition where DW_AT_specification points (DWARF 5, sections 3.3.8 and
 * 2.13.2): in its unit, in another unit or in the alternate file. Such chains
 * are followed for a few steps, and each distinct entry is read once.
 */

struct dwarf_name {
	const char *name; /* DW_AT_name, NULL = none */
	const char *linkage; /* DW_AT_linkage_name, NULL = none */
	bool alt_missing; /* the chain leads into a missing alternate file */
};

#define DWARF_CALL_NO_FILE UINT32_MAX

/* Where an inlined function is called; file as in the unit's line table. */
struct dwarf_call {
	uint32_t file, line, column;
};

struct dwarf_name_chunk;

struct dwarf_name_table {
	struct dwarf_info *alt; /* NULL = none */
	struct idmap known; /* file and offset to index in LIST */
	struct dwarf_name *list;
	size_t n, cap;
	struct dwarf_name_chunk *chunks; /* strings that were inside entries */
	uint64_t bytes;
	struct dwarf_piece piece;
};

void dwarf_name_table_free(struct dwarf_name_table *n); /* a zeroed one is empty; the caller sets ALT */

/*
 * The names and the call of the entry whose values begin at R (in unit U of D,
 * with table T, behind its code). Strings are valid until
 * dwarf_name_table_free() or the file is closed.
 */
void dwarf_name_table_of_entry(struct dwarf_name_table *n, struct dwarf_info *d, struct dwarf_unit *u,
	const struct dwarf_abbrev_table *t, const struct dwarf_abbrev *a, struct rd r, struct dwarf_name *ret,
	struct dwarf_call *call);

#endif
