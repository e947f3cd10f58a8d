/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarfeval - works out the DWARF expressions that libdw hands out, on a
 * machine whose registers and memory are made up.
 *
 * DWARF 5, sections 2.5 and 2.6. Memory at an address, and what a register
 * holds, follow from a number that the caller chooses, so that two ways to
 * say the same come to the same value and two that differ hardly ever do.
 */
#ifndef STACKTOOLS_T_DWARFEVAL_H
#define STACKTOOLS_T_DWARFEVAL_H

#include "base/base.h"

#include <elfutils/libdw.h>

struct dwarfeval {
	uint64_t seed;
	uint64_t pc; /* what register PC_REG holds */
	unsigned int pc_reg;
	uint64_t cfa; /* for DW_OP_call_frame_cfa */
};

uint64_t dwarfeval_register(const struct dwarfeval *m, uint64_t reg);
uint64_t dwarfeval_memory(const struct dwarfeval *m, uint64_t addr);

/* The value of OPS as an expression. False for an operation that is not known, or a stack that runs dry. */
bool dwarfeval_value(const struct dwarfeval *m, const Dwarf_Op *ops, size_t n, uint64_t *ret);

/* The value that is found at the location that OPS describes: a register, memory, or a value itself. */
bool dwarfeval_location(const struct dwarfeval *m, const Dwarf_Op *ops, size_t n, uint64_t *ret);

#endif
