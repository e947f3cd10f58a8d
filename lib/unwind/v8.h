/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * v8 - what a program with V8 exports about it: its version, the constants that
 * debuggers read (v8dbg_*), and where the code of its builtins is.
 *
 * Builtins have no unwind tables and, in a stripped file, no names. The function
 * that returns their address is exported, as is the one that returns a variable
 * with their size; both are a few instructions, whose constants are read here.
 * Runs in the worker that compiles tables.
 */
#ifndef STACKTOOLS_UNWIND_V8_H
#define STACKTOOLS_UNWIND_V8_H

#include "elf/file.h"
#include "elf/symbols.h"
#include "unwind/table.h"

/*
 * Fill in RET if F is one; FIND looks up an exported symbol. `eval` is the code
 * of builtins, `cold` the table of the sizes of bytecodes,
 * `state_bytes` a checksum of the constants in which layouts differ.
 */
bool v8_read(const struct elffile *f, bool (*find)(void *ctx, const char *name, struct elfcode_symbol *ret),
	void *ctx, struct unwindtab_interpreter *ret);

#endif
