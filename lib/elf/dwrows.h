/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwrows - the rows of a line number program that addresses fall into.
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
#ifndef STACKTOOLS_DWROWS_H
#define STACKTOOLS_DWROWS_H

#include "base/bytes.h"

struct dwline_row {
	uint32_t file, line, column; /* file as in the program: 0-based since DWARF 5, else 1-based */
};

struct dwrows_program {
	struct rd ops;
	uint8_t min_inst, max_ops, line_range, opcode_base; /* as in the heading; the last two are not 0 */
	int8_t line_base;
	const uint8_t *lengths; /* the number of operands of opcode 1, 2, ... below opcode_base */
	uint64_t top; /* the highest address there is */
	bool zero_ok; /* code may be at address 0 */
	/* DW_LNE_define_file: what follows the opcode. 0, -EINVAL, -ENOMEM */
	int (*define_file)(void *ctx, struct rd *r);
	void *ctx;
};

/*
 * ROWS[i] for VADDRS[i] (ascending); rows that no sequence covers stay as they
 * were. -EINVAL where the program breaks off or makes no sense: what came
 * before is kept. -ENOMEM.
 */
int dwrows_run(const struct dwrows_program *p, const uint64_t *vaddrs, size_t n, struct dwline_row *rows);

#endif
