/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lookup - names, inlined calls and source lines of some addresses of one file, from the file and
 * its debug files.
 *
 * A pure function of its input: it opens nothing. Its input is hostile, so it runs in a sandboxed
 * process (symbols/pool.h).
 *
 * The outermost frame is named by the symbol that covers the address, if there is one (symbols
 * distinguish "foo.cold" and "foo.constprop.0"), else by the debug information. Inlined frames and
 * lines come from the debug information. Order of the tables: .symtab of the file, of its debug
 * file, of .gnu_debugdata, .dynsym, PLT entries, .gopclntab of Go programs, which also has lines for
 * addresses of which no debug information knows one. The nearest symbol before an address never names
 * it: without a name, the answer has where the function begins, by its FDE (unwind/fde.h).
 */
#ifndef STACKTOOLS_SYMBOLS_LOOKUP_H
#define STACKTOOLS_SYMBOLS_LOOKUP_H

#include "base/base.h"
#include "elf/file.h"
#include "symbols/answer.h"

/*
 * demangle - C++, Rust and D names in readable form.
 *
 * A bounded wrapper around libiberty's demanglers: names come from the files of the observed
 * process, and a short mangled name can expand without end. Therefore both input and output have a
 * limit.
 */

#define DEMANGLE_IN_MAX 2048 /* longer names stay mangled */
#define DEMANGLE_OUT_MAX 16384 /* names with a longer result stay mangled */

/*
 * Demangle NAME into BUF of CAP bytes, always terminated and never cut (a result that does not fit
 * is too long): with parameters, Rust without its hash. Returns the length, or 0 if NAME is not a
 * mangled name or exceeds a limit.
 */
size_t demangle(const char *name, char *buf, size_t cap);

/*
 * Increase it with every change that may change an answer: another name, frame or line, another
 * order of look-up, another way to demangle. Cached answers of other versions (symbols/cache.h) are
 * not used. If the format of answers changes, change SUFFIX in symbols/cache.c, too.
 */
#define SYM_LOOKUP_VERSION 2

struct sym_lookup_dwo {
	uint64_t id; /* as in sym_answer_want() */
	const struct elffile *file;
};

struct sym_lookup_input {
	const struct elffile
		*elf; /* the mapped file; addresses in a relocatable file are those of elfrel_layout() */
	const struct elffile *debug; /* separate debug file with the same build ID, NULL = none */
	const struct elffile *alt; /* dwz's alternate file for the debug information, NULL = none */
	const struct elffile *dwp; /* packed split DWARF, NULL = none */
	const struct sym_lookup_dwo *dwos;
	size_t n_dwos;
	const uint64_t *vaddrs; /* ascending, distinct; return addresses already moved one back */
	size_t n_vaddrs;
	bool inlines, lines, demangle;
	uint64_t max_bytes; /* for debug information; beyond it SYM_R_LIMIT; 0 = 1 GiB */
};

/*
 * Put the answer (symbols/answer.h) into fresh memory. 0, or -errno with the message if there is no
 * answer at all.
 */
int sym_lookup(const struct sym_lookup_input *in, uint8_t **ret, size_t *len, struct err *e);

#endif
