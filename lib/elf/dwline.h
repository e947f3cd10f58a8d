/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwline - the line table of one unit: run once over sorted addresses.
 *
 * Line number programs of DWARF 2 to 5 (DWARF 5, section 6.2). A program is run
 * from its beginning to its end, and no row of it is kept; what is the row of an
 * address is said in dwrows.h. Names and directories are joined when they are asked for.
 */
#ifndef STACKTOOLS_DWLINE_H
#define STACKTOOLS_DWLINE_H

#include "elf/dwrows.h"
#include "elf/dwsect.h"

struct dwline_opts {
	uint64_t offset; /* DW_AT_stmt_list */
	uint8_t addr_size;
	const char *comp_dir; /* of the unit, NULL = unknown */
	const char *name; /* of the unit: file 0 before DWARF 5; both are copied */
	bool zero_ok; /* code may be at address 0: ET_REL */
};

struct dwline; /* a table's heading: its files */

/*
 * Read the heading of the program at O->offset of S's .debug_line; S must stay.
 * -EINVAL where it is malformed, -ENOMEM, -EIO, and -E2BIG and the like of dwsect_read().
 */
int dwline_open(struct dwsect *s, const struct dwline_opts *o, struct dwline **ret, struct err *e);
void dwline_close(struct dwline *l); /* NULL is fine */

/*
 * Run it: ROWS[i] for VADDRS[i] (ascending); rows that no sequence covers stay
 * as they were. -EINVAL where the program breaks off: what came before is kept.
 */
int dwline_run(struct dwline *l, const uint64_t *vaddrs, size_t n, struct dwline_row *rows, struct err *e);

/*
 * Path of file number FILE: directory and name joined (absolute ones stay);
 * NULL = no such, or its name or directory is out of reach. Valid until the next run or the close.
 */
const char *dwline_file(struct dwline *l, uint32_t file);

uint64_t dwline_bytes(const struct dwline *l); /* of memory */

#endif
