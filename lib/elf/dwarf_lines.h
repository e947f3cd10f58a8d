/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_lines - the line table of one unit, run once over sorted addresses.
 *
 * Runs line number programs of DWARF 2 to 5 (DWARF 5, section 6.2) from
 * beginning to end without keeping their rows. dwarf_rows below defines the row
 * of an address. Names and directories are joined on request.
 */
#ifndef STACKTOOLS_ELF_DWARF_LINES_H
#define STACKTOOLS_ELF_DWARF_LINES_H

#include "base/bytes.h"
#include "elf/dwarf_sections.h"

/*
 * dwarf_rows - the rows of a line number program that contain given addresses.
 *
 * DWARF 5, section 6.2.5; the opcodes are those of versions 2 to 5. Rows are
 * not kept: an address gets its row when the next row is reached. The row of an
 * address is the last one of its sequence that is not above it. Of rows with
 * the same address the last one is used. A row with line 0 (code that the
 * compiler added) gives line 0. The end of a sequence is outside it. If
 * sequences overlap, the one that starts last is used; of those that start
 * together the first one (functions that the linker folded into one). The
 * number of overlaps is bounded by the bytes of the program and the number of
 * addresses.
 *
 * Code that the linker discarded is ignored: code at one of the highest two
 * addresses, and at 0 unless ZERO_OK. If addresses decrease inside a sequence,
 * it ends there and another one begins; nothing is reported for the addresses
 * between the two.
 */

struct dwarf_line_row {
	uint32_t file, line, column; /* file as in the program: 0-based since DWARF 5, else 1-based */
};

struct dwarf_line_opts {
	uint64_t offset; /* DW_AT_stmt_list */
	uint8_t addr_size;
	const char *comp_dir; /* of the unit, NULL = unknown */
	const char *name; /* name of the unit: file 0 before DWARF 5; both strings are copied */
	bool zero_ok; /* code may be at address 0: ET_REL */
};

struct dwarf_line; /* heading of a table: its files */

/*
 * Read the heading of the program at O->offset of S's .debug_line. S must
 * outlive *RET. -EINVAL if it is malformed, -ENOMEM, -EIO, and -E2BIG etc. of
 * dwarf_sections_read().
 */
int dwarf_line_open(
	struct dwarf_sections *s, const struct dwarf_line_opts *o, struct dwarf_line **ret, struct err *e);
void dwarf_line_close(struct dwarf_line *l); /* NULL is fine */

/*
 * Run it: set ROWS[i] for VADDRS[i] (ascending). Rows that no sequence covers
 * stay unchanged. -EINVAL if the program breaks off: the rows set before are
 * kept.
 */
int dwarf_line_run(
	struct dwarf_line *l, const uint64_t *vaddrs, size_t n, struct dwarf_line_row *rows, struct err *e);

/*
 * Path of file number FILE: directory and name joined (absolute names are
 * unchanged). NULL = no such file, or its name or directory cannot be read.
 * Valid until the next run or the close.
 */
const char *dwarf_line_file(struct dwarf_line *l, uint32_t file);

uint64_t dwarf_line_bytes(const struct dwarf_line *l); /* of memory */

#endif
