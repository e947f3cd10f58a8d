/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_sections - the DWARF sections of one ELF file, read piece by piece.
 *
 * A section that is stored as it is gets read with pread(2) where it is asked
 * for: one gigabyte of debug information takes the memory of the unit at hand. A
 * compressed one is decompressed whole when it is first asked for, within the limit. Pieces
 * that were read are copies: nothing is mapped, so a file that shrinks gives an error.
 */
#ifndef STACKTOOLS_ELF_DWARF_SECTIONS_H
#define STACKTOOLS_ELF_DWARF_SECTIONS_H

#include "base/bytes.h"
#include "elf/section.h"

enum dwarf_section_id {
	DWARF_SECTION_INFO,
	DWARF_SECTION_TYPES,
	DWARF_SECTION_ABBREV,
	DWARF_SECTION_STR,
	DWARF_SECTION_LINE,
	DWARF_SECTION_LINE_STR,
	DWARF_SECTION_STR_OFFSETS,
	DWARF_SECTION_ADDR,
	DWARF_SECTION_RANGES,
	DWARF_SECTION_RNGLISTS,
	DWARF_SECTION_CU_INDEX,
	DWARF_SECTION_TU_INDEX,
	DWARF_SECTION_COUNT
};

struct dwarf_sections;

/*
 * F must stay. With DWO the names are those of split DWARF (".debug_info.dwo",
 * while the indexes have none of their own). MAX_BYTES bounds what is decompressed and the
 * strings, taken together, and each piece.
 */
int dwarf_sections_open(
	const struct elffile *f, bool dwo, uint64_t max_bytes, struct dwarf_sections **ret, struct err *e);
void dwarf_sections_close(struct dwarf_sections *s); /* NULL is fine */

/* Uncompressed; 0 = there is none. Of one that cannot be unpacked its size in the file: reading it says why.
 */
uint64_t dwarf_sections_size(struct dwarf_sections *s, enum dwarf_section_id id);

/* A piece of a section in memory of its own, used again for the next piece; zero it first, free its bytes
 * last. */
struct dwarf_piece {
	uint64_t at; /* its offset in the section */
	const uint8_t *bytes; /* one NUL behind them */
	size_t len;
	uint8_t *own;
	size_t cap;
};

/*
 * LEN bytes at offset AT, or as many as there are. -EINVAL when AT lies outside (at the end too),
 * -EIO, -ENOMEM, -EOPNOTSUPP/-E2BIG for a compressed section that cannot be unpacked.
 */
int dwarf_sections_read(struct dwarf_sections *s, enum dwarf_section_id id, uint64_t at, uint64_t len,
	struct dwarf_piece *p, struct err *e);
void dwarf_piece_free(struct dwarf_piece *p);

/*
 * The NUL-terminated string at AT of a string section: valid until dwarf_sections_close(); strings
 * are read in blocks which are kept, within limits. NULL when it lies outside, is longer than 64 KiB or
 * memory runs out.
 */
const char *dwarf_sections_string(struct dwarf_sections *s, enum dwarf_section_id id, uint64_t at);

uint64_t dwarf_sections_bytes(const struct dwarf_sections *s); /* held in all, for the statistics */

#endif
