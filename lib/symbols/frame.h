/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame - one resolved address, as data.
 *
 * symbols/resolve.h makes these, symbols/print.h prints them. The ladder of what is known:
 * a function (name, offset, module), else the module and an offset into it,
 * else the raw address alone; `source` says which rung, `reason` why not a
 * higher one. Strings belong to whoever made the frame and are raw bytes:
 * escape before printing.
 */
#ifndef STACKTOOLS_SYMBOLS_FRAME_H
#define STACKTOOLS_SYMBOLS_FRAME_H

#include "base/base.h"

/* From where the name is. */
enum frame_source {
	FRAME_DWARF, /* a function of the debug information; no symbol covers the address */
	FRAME_SYMTAB, /* .symtab of the file that was mapped or of its debug file */
	FRAME_MINIDEBUG, /* .symtab inside .gnu_debugdata */
	FRAME_DYNSYM,
	FRAME_PLT, /* made up from what the stub leads to: name@plt */
	FRAME_PERFMAP, /* what a JIT compiler wrote into /tmp/perf-PID.map */
	FRAME_JITDUMP, /* the same in a jitdump file */
	FRAME_STORED, /* the name that the recorder stored: the file is not here */
	FRAME_KSYM, /* the capture's own kernel symbols */
	FRAME_MODULE, /* no name: module and offset */
	FRAME_RAW, /* nothing but the address */
	FRAME_SOURCES
};

/* A function, and where execution is inside it. */
struct frame_call {
	const char *name; /* as it is shown */
	const char *linkage; /* as the tables have it, NULL = unknown */
	const char *file; /* source path, NULL = unknown */
	uint32_t line, column; /* 0 = unknown */
};

struct frame {
	uint64_t address; /* as recorded */
	uint64_t offset; /* address - start of the function; 0 without one */
	uint64_t module_offset; /* into the mapped file; of the address itself */
	const char *name; /* NULL = no symbol */
	const char *linkage; /* as the symbol table has it, NULL without a symbol */
	const char *module; /* path, "[vdso]", "//anon"; kernel module name, "bpf"; NULL = unknown */
	const char *file; /* source path, NULL = unknown */
	const char *reason; /* why there is no name or line, or why it is not sure; NULL = all is well */
	const struct frame_call *inlined; /* calls inlined into the function, innermost first */
	uint32_t n_inlined;
	uint32_t line, column; /* in FILE: of the address, or of the outermost inlined call; 0 = unknown */
	enum frame_source source;
	bool kernel;
	bool in_file; /* module is a file and module_offset counts */
	bool unsure; /* NAME is of the function before the address, for want of a better one */
	bool no_start; /* where the function begins is not known, so OFFSET is not either */
};

/* "dwarf", "symtab", "minidebuginfo", "dynsym", "plt", "perfmap", "jitdump", "stored", "ksym", "module",
 * "raw" */
const char *frame_source_name(enum frame_source source);

#endif
