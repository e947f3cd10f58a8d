/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_lines - the line table of one unit: run once over sorted addresses.
 *
 * Line number programs of DWARF 2 to 5 (DWARF 5, section 6.2). A program is run
 * from its beginning to its end, and no row of it is kept; what is the row of an
 * address is said in dwrows_*(). Names and directories are joined when they are asked for.
 */
#ifndef STACKTOOLS_ELF_DWARF_LINES_H
#define STACKTOOLS_ELF_DWARF_LINES_H

#include "base/bytes.h"
#include "elf/dwarf_sections.h"

/*
 * dwarf_rows - the rows of a line number program that addresses fall into.
 *
 * DWARF 5, section 6.2.5; the opcodes are those of versions 2 to 5. No row is
 * kept: an address gets its row when the one behind it comes by. The row of an
 * address is the last one of its sequence that is not above it: of rows with the same address
 * the last one counts; a row with line 0 (code of the compiler's own)
 * gives line 0; the end of a sequence is outside. Of sequences that overlap, the one that
 * starts last counts, and of those that start together the first one (functions
 * that the linker folded into one). The overlaps in all are bounded by the bytes of the
 * program and the number of addresses.
 *
 * Ignored is the code that the linker discarded: what is set to one of the
 * highest two addresses, and to 0 unless ZERO_OK. Where addresses go back
 * inside a sequence, it ends there and another begins; nothing is told of what
 * lies between the two.
 */

struct dwarf_line_row {
	uint32_t file, line, column; /* file as in the program: 0-based since DWARF 5, else 1-based */
};

struct dwarf_line_opts {
	uint64_t offset; /* DW_AT_stmt_list */
	uint8_t addr_size;
	const char *comp_dir; /* of the unit, NULL = unknown */
	const char *name; /* of the unit: file 0 before DWARF 5; both are copied */
	bool zero_ok; /* code may be at address 0: ET_REL */
};

struct dwarf_line; /* a table's heading: its files */

/*
 * Read the heading of the program at O->offset of S's .debug_line; S must stay.
 * -EINVAL where it is malformed, -ENOMEM, -EIO, and -E2BIG and the like of dwarf_sections_read().
 */
int dwarf_line_open(
	struct dwarf_sections *s, const struct dwarf_line_opts *o, struct dwarf_line **ret, struct err *e);
void dwarf_line_close(struct dwarf_line *l); /* NULL is fine */

/*
 * Run it: ROWS[i] for VADDRS[i] (ascending); rows that no sequence covers stay
 * as they were. -EINVAL where the program breaks off: what came before is kept.
 */
int dwarf_line_run(
	struct dwarf_line *l, const uint64_t *vaddrs, size_t n, struct dwarf_line_row *rows, struct err *e);

/*
 * Path of file number FILE: directory and name joined (absolute ones stay);
 * NULL = no such, or its name or directory is out of reach. Valid until the next run or the close.
 */
const char *dwarf_line_file(struct dwarf_line *l, uint32_t file);

uint64_t dwarf_line_bytes(const struct dwarf_line *l); /* of memory */

#endif
