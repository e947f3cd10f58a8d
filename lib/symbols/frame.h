/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame - one resolved address, as data. Floor 2.
 *
 * resolve.h makes these, perftext.h prints them. The ladder of what is known:
 * a symbol (name, offset, module), else the module and an offset into it,
 * else the raw address alone; `source` says which rung, `reason` why not a
 * higher one. Strings belong to whoever made the frame and are raw bytes:
 * escape before printing.
 */
#ifndef STACKTOOLS_FRAME_H
#define STACKTOOLS_FRAME_H

#include "base.h"

enum frame_source {
	FRAME_SYMTAB, /* .symtab of the file that was mapped */
	FRAME_DYNSYM, /* its .dynsym */
	FRAME_DEBUG, /* .symtab of a separate debug file with the same build ID */
	FRAME_KSYM, /* the capture's own kernel symbols */
	FRAME_RAW, /* no symbol: module and offset */
	FRAME_NONE, /* nothing but the address */
};

struct frame {
	uint64_t address; /* as recorded */
	uint64_t offset; /* address - start of the symbol; 0 without one */
	uint64_t module_offset; /* into the mapped file; of the address itself */
	const char *name; /* NULL = no symbol */
	const char *linkage; /* as the symbol table has it, NULL without a symbol */
	const char *module; /* path, "[vdso]", "//anon"; kernel module name, "bpf"; NULL = unknown */
	const char *reason; /* why there is no name, or why it is not sure; NULL = all is well */
	enum frame_source source;
	bool kernel;
	bool in_file; /* module is a file and module_offset counts */
};

/* "symtab", "dynsym", "debug", "ksym", "raw", "none" */
const char *frame_source_name(enum frame_source source);

#endif
