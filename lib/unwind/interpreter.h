/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interpreter - is an ELF file the interpreter of a language, and which one?
 *
 * The names of files prove nothing. What does are exported symbols, which the
 * runtime's own modules need, and the version that the file itself states. The
 * dynamic symbols are looked up by their hash table, so that a file which is no
 * interpreter costs two reads. Runs in the worker that compiles tables.
 */
#ifndef STACKTOOLS_UNWIND_INTERPRETER_H
#define STACKTOOLS_UNWIND_INTERPRETER_H

#include "elf/file.h"
#include "unwind/table.h"

/* All zero if F is none, or cannot be read. HOTSPOT is filled in for RUNTIME_JAVA, else set to zero. */
struct unwindtab_interpreter interpreter_find(const struct elffile *f, struct unwindtab_hotspot *hotspot);

#endif
