/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ruby - what a file with MRI in it (libruby, or a program that is linked with it)
 * does not export, but its code and its relocations show.
 *
 * - vm_exec_core(), which executes code in Ruby: its table of the labels of all
 *   instructions, from which a compiler makes one relocation each, next to each
 *   other. No other function of Ruby has half as many.
 * - The variable with the thread's own structure: ruby_native_thread_p() reads
 *   it and nothing else.
 * - The table of symbols: rb_sym_all_symbols() loads its address twice.
 *
 * Runs in the worker that compiles tables.
 */
#ifndef STACKTOOLS_UNWIND_RUBY_H
#define STACKTOOLS_UNWIND_RUBY_H

#include "elf/file.h"
#include "unwind/table.h"

/* Functions and constants that F exports: their addresses and sizes. */
struct ruby_exports {
	uint64_t version; /* ruby_version: a text */
	uint64_t thread, thread_bytes; /* ruby_native_thread_p() */
	uint64_t symbols, symbols_bytes; /* rb_sym_all_symbols() */
};

/* Set version, state, eval and ruby of RET. The version is 0 if one of the former two was not found. */
void ruby_read(const struct elffile *f, const struct ruby_exports *x, struct unwindtab_interpreter *ret);

#endif
