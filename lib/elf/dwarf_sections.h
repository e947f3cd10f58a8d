/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_sections - the DWARF sections of one ELF file, read piece by piece.
 *
 * An uncompressed section is read with pread(2) on demand: one gigabyte of
 * debug information takes only the memory of the current unit. A compressed
 * section is decompressed as a whole on first use, within the limit. Pieces are
 * copies: nothing is mapped, so a file that shrinks causes an error.
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
 * F must outlive *RET. With DWO the names are those of split DWARF
 * (".debug_info.dwo"; the indexes keep their names). MAX_BYTES bounds the sum
 * of decompressed sections and strings, and each piece.
 */
int dwarf_sections_open(
	const struct elffile *f, bool dwo, uint64_t max_bytes, struct dwarf_sections **ret, struct err *e);
void dwarf_sections_close(struct dwarf_sections *s); /* NULL is fine */

/*
 * The uncompressed size; 0 = none. For a section that cannot be decompressed,
 * its size in the file; reading it gives the error.
 */
uint64_t dwarf_sections_size(struct dwarf_sections *s, enum dwarf_section_id id);

/*
 * A piece of a section in memory of its own, which is reused for the next
 * piece. Zero it first; release it with dwarf_piece_free().
 */
struct dwarf_piece {
	uint64_t at; /* offset in the section */
	const uint8_t *bytes; /* followed by one NUL */
	size_t len;
	uint8_t *own;
	size_t cap;
};

/*
 * Read LEN bytes at offset AT, or as many as there are. -EINVAL if AT is at the
 * end of the section or beyond, -EIO, -ENOMEM, -EOPNOTSUPP/-E2BIG for a
 * compressed section that cannot be decompressed.
 */
int dwarf_sections_read(struct dwarf_sections *s, enum dwarf_section_id id, uint64_t at, uint64_t len,
	struct dwarf_piece *p, struct err *e);
void dwarf_piece_free(struct dwarf_piece *p);

/*
 * The NUL-terminated string at AT of a string section, valid until
 * dwarf_sections_close(). Strings are read in blocks which are kept, within
 * limits. NULL if it lies outside, is longer than 64 KiB or memory runs out.
 */
const char *dwarf_sections_string(struct dwarf_sections *s, enum dwarf_section_id id, uint64_t at);

uint64_t dwarf_sections_bytes(const struct dwarf_sections *s); /* memory used, for the statistics */

#endif
