/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwline - the line table of one unit: run once over sorted addresses.
 * Floor 6.
 *
 * Line number programs of DWARF 2 to 5 (DWARF 5, section 6.2). A program is run
 * from its beginning to its end; only the rows of the sequence at hand are
 * kept, and the addresses that fall into it get their row when it ends.
 * Of rows with the same address the last one counts; a row with line 0 (code of
 * the compiler's own) gives line 0. Sequences that begin at 0 where
 * nothing is mapped (discarded by the linker) are ignored when LOW_PC_OK says
 * no: see dwline_opts.
 */
#ifndef STACKTOOLS_DWLINE_H
#define STACKTOOLS_DWLINE_H

#include "dwsect.h"

struct dwline_opts {
	uint64_t offset; /* DW_AT_stmt_list */
	uint8_t addr_size;
	const char *comp_dir; /* of the unit, NULL = unknown */
	const char *name; /* of the unit: file 0 before DWARF 5 */
};

struct dwline_row {
	uint32_t file, line, column; /* file as in the program: 0-based since DWARF 5, else 1-based */
};

struct dwline; /* a table's heading: its files */

/* Read the heading of the program at O->offset of S's .debug_line. -EINVAL, -ENOMEM. */
int dwline_open(struct dwsect *s, const struct dwline_opts *o, struct dwline **ret, struct err *e);
void dwline_close(struct dwline *l); /* NULL is fine */

/*
 * Run it: ROWS[i] for VADDRS[i] (ascending); rows that no sequence covers stay
 * as they were. -EINVAL where the program breaks off: what came before is kept.
 */
int dwline_run(struct dwline *l, const uint64_t *vaddrs, size_t n, struct dwline_row *rows, struct err *e);

/* Path of file number FILE: directory and name joined (absolute ones stay); NULL = no such. Valid until the
 * close. */
const char *dwline_file(struct dwline *l, uint32_t file);

#endif
