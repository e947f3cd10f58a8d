/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symlook - names, inlined calls and source lines of some addresses of one
 * file, by whatever the file and its debug files hold.
 *
 * A pure function of its input: it opens nothing. What it reads is hostile, so
 * it is run in a process that can do nothing else (symchild.h).
 *
 * The outermost frame is named by the symbol table where it has a symbol that
 * covers the address (the linker's truth: "foo.cold", "foo.constprop.0" are
 * told apart), else by the debug information; inlined frames and lines come
 * from the debug information. Look-ups in order: .symtab of the file, of its
 * debug file, of .gnu_debugdata, .dynsym, PLT entries.
 */
#ifndef STACKTOOLS_SYMLOOK_H
#define STACKTOOLS_SYMLOOK_H

#include "elf/file.h"
#include "symbols/symanswer.h"

/*
 * Raise it with every change that may change any answer: another name, frame or
 * line, another order of look-up, another way to demangle. Answers of other versions that
 * are kept on disk (symkeep.h) are not used. A change of the format of answers changes symcache.c's name,
 * too.
 */
#define SYMLOOK_VERSION 1

struct symlook_dwo {
	uint64_t id; /* as asked for by symanswer_want() */
	const struct elffile *file;
};

struct symlook_input {
	const struct elffile
		*elf; /* the mapped file; of a relocatable one addresses are those of elfrel_layout() */
	const struct elffile *debug; /* its separate debug file, NULL = none; the build ID agrees */
	const struct elffile *alt; /* dwz's alternate file of whichever holds the debug information, NULL */
	const struct elffile *dwp; /* packed split DWARF, NULL */
	const struct symlook_dwo *dwos;
	size_t n_dwos;
	const uint64_t *vaddrs; /* ascending, distinct; return addresses are one back already */
	size_t n_vaddrs;
	bool inlines, lines, demangle;
	uint64_t max_bytes; /* memory for debug information: beyond it SYM_R_LIMIT; 0 = 1 GiB */
};

/* The answer (symanswer.h) in fresh memory. 0, or -errno with the story where nothing at all can be told. */
int symlook(const struct symlook_input *in, uint8_t **ret, size_t *len, struct err *e);

#endif
