/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwrange - the addresses that an entry covers.
 *
 * DW_AT_low_pc with DW_AT_high_pc, or DW_AT_ranges: .debug_ranges (DWARF 4,
 * section 2.17.3) and .debug_rnglists (DWARF 5, section 2.17.3), directly or by
 * index, with base addresses.
 */
#ifndef STACKTOOLS_DWRANGE_H
#define STACKTOOLS_DWRANGE_H

#include "elf/dwinfo.h"

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

/* An address by itself or by its index; false where it cannot be told. */
bool dwrange_address(const struct dwbases *b, const struct dwvalue *v, uint64_t *ret);

/*
 * RET becomes the ranges that are not empty, in the order of the file. 0,
 * -EINVAL when a list is malformed (what came before it is in RET), -ENOMEM.
 */
int dwrange_read(const struct dwbases *b, const struct dwvalue *low, const struct dwvalue *high,
	const struct dwvalue *ranges, struct dwspans *ret, struct err *e);

#endif
