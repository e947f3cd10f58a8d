/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarfeval - an evaluator of the DWARF expressions that libdw returns, on a
 * machine with made-up registers and memory.
 *
 * DWARF 5, sections 2.5 and 2.6. The contents of memory and registers are
 * derived from a number that the caller chooses: two equivalent expressions
 * have the same value, and two different ones almost never do.
 */
#ifndef STACKTOOLS_T_DWARFEVAL_H
#define STACKTOOLS_T_DWARFEVAL_H

#include "base/base.h"

#include <elfutils/libdw.h>

struct dwarfeval {
	uint64_t seed;
	uint64_t pc; /* value of register PC_REG */
	unsigned int pc_reg;
	uint64_t cfa; /* for DW_OP_call_frame_cfa */
};

uint64_t dwarfeval_register(const struct dwarfeval *m, uint64_t reg);
uint64_t dwarfeval_memory(const struct dwarfeval *m, uint64_t addr);

/* Evaluate OPS as an expression. Returns false for an unknown operation, or if the stack underflows. */
bool dwarfeval_value(const struct dwarfeval *m, const Dwarf_Op *ops, size_t n, uint64_t *ret);

/* The value at the location that OPS describes: in a register, in memory, or the value itself. */
bool dwarfeval_location(const struct dwarfeval *m, const Dwarf_Op *ops, size_t n, uint64_t *ret);

#endif
