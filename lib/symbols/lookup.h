/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lookup - names, inlined calls and source lines of some addresses of one
 * file, by whatever the file and its debug files hold.
 *
 * A pure function of its input: it opens nothing. What it reads is hostile, so
 * it is run in a process that can do nothing else (symbols/pool.h).
 *
 * The outermost frame is named by the symbol table where it has a symbol that
 * covers the address (the linker's truth: "foo.cold", "foo.constprop.0" are
 * told apart), else by the debug information; inlined frames and lines come
 * from the debug information. Look-ups in order: .symtab of the file, of its
 * debug file, of .gnu_debugdata, .dynsym, PLT entries.
 */
#ifndef STACKTOOLS_SYMBOLS_LOOKUP_H
#define STACKTOOLS_SYMBOLS_LOOKUP_H

#include "base/base.h"
#include "elf/file.h"
#include "symbols/answer.h"

/*
 * demangle - C++, Rust and D names as people write them.
 *
 * A bounded wrapper of libiberty's demanglers: names come from the files of
 * the observed process, and a short mangled name can stand for an endless
 * text, so both ends have a limit.
 */

#define DEMANGLE_IN_MAX 2048 /* longer names stay mangled */
#define DEMANGLE_OUT_MAX 16384 /* names that become longer stay mangled */

/*
 * NAME demangled into BUF of CAP bytes, always terminated, never cut (a text
 * that does not fit counts as too long): with parameters, Rust without its
 * hash. Returns the length, or 0 when NAME is no mangled name or goes beyond
 * the limits.
 */
size_t demangle(const char *name, char *buf, size_t cap);

/*
 * Raise it with every change that may change any answer: another name, frame or
 * line, another order of look-up, another way to demangle. Answers of other versions that
 * are kept on disk (symbols/cache.h) are not used. A change of the format of answers changes
 * symbols/cache.c's name, too.
 */
#define SYM_LOOKUP_VERSION 1

struct sym_lookup_dwo {
	uint64_t id; /* as asked for by sym_answer_want() */
	const struct elffile *file;
};

struct sym_lookup_input {
	const struct elffile
		*elf; /* the mapped file; of a relocatable one addresses are those of elfrel_layout() */
	const struct elffile *debug; /* its separate debug file, NULL = none; the build ID agrees */
	const struct elffile *alt; /* dwz's alternate file of whichever holds the debug information, NULL */
	const struct elffile *dwp; /* packed split DWARF, NULL */
	const struct sym_lookup_dwo *dwos;
	size_t n_dwos;
	const uint64_t *vaddrs; /* ascending, distinct; return addresses are one back already */
	size_t n_vaddrs;
	bool inlines, lines, demangle;
	uint64_t max_bytes; /* memory for debug information: beyond it SYM_R_LIMIT; 0 = 1 GiB */
};

/* The answer (symbols/answer.h) in fresh memory. 0, or -errno with the message where nothing at all can be
 * told. */
int sym_lookup(const struct sym_lookup_input *in, uint8_t **ret, size_t *len, struct err *e);

#endif
