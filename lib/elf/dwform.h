/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwform - the values of DWARF attributes: how wide they are, what they are.
 *
 * Forms of DWARF 2 to 5 (DWARF 5, section 7.5.6), and those of GNU for split
 * DWARF and for alternate files.
 */
#ifndef STACKTOOLS_DWFORM_H
#define STACKTOOLS_DWFORM_H

#include "base/bytes.h"

/* What widths depend on: of the unit's head. */
struct dwshape {
	uint16_t version;
	uint8_t addr_size; /* 1, 2, 4 or 8 */
	uint8_t offset_size; /* 4, or 8 in the 64-bit format */
};

enum dwvalue_kind {
	DWV_NONE, /* absent, or of no use here: blocks, signatures */
	DWV_ADDR, /* an address */
	DWV_ADDRX, /* its index in .debug_addr */
	DWV_CONST, /* a number; before DWARF 4 offsets look the same */
	DWV_OFFSET, /* an offset in another section */
	DWV_LISTX, /* an index of .debug_rnglists or .debug_loclists */
	DWV_REF, /* an entry, by its offset in the unit */
	DWV_REF_INFO, /* an entry, by its offset in .debug_info */
	DWV_REF_ALT, /* an entry of the alternate file */
	DWV_TEXT, /* a string in place */
	DWV_STRP, /* offsets in .debug_str, .debug_line_str, the alternate file's .debug_str */
	DWV_LINE_STRP,
	DWV_STRP_ALT,
	DWV_STRX, /* an index of .debug_str_offsets */
};

struct dwvalue {
	enum dwvalue_kind kind;
	uint64_t u; /* DWV_TEXT: nothing */
	const char *text; /* DWV_TEXT: ends within the bytes that were read */
};

/* How a value is stepped over whose size is not fixed. */
enum dwskip {
	DWSKIP_FIXED, /* dwform_size() tells */
	DWSKIP_LEB,
	DWSKIP_STRING,
	DWSKIP_BLOCK1,
	DWSKIP_BLOCK2,
	DWSKIP_BLOCK4,
	DWSKIP_BLOCK, /* the length is a ULEB128 */
	DWSKIP_INDIRECT, /* the form stands before the value */
	DWSKIP_UNKNOWN,
};

/* *SIZE is set for DWSKIP_FIXED. */
enum dwskip dwform_skip_of(uint16_t form, const struct dwshape *shape, uint32_t *size);

/* The value of FORM at R; IMPLICIT is that of the abbreviation. What is malformed sets r->bad. */
struct dwvalue dwform_read(struct rd *r, uint16_t form, int64_t implicit, const struct dwshape *shape);

#endif
