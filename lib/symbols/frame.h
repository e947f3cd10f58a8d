/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame - one resolved address, as data.
 *
 * symbols/resolve.h makes frames, symbols/print.h prints them. A frame has the best that is known:
 * a function (name, offset, module), else the function's start in the module, else the place in the
 * module, else only the address. `source` says which, `reason` why nothing better is known. Strings belong to
 * the maker of the frame and are raw bytes: escape them before printing.
 */
#ifndef STACKTOOLS_SYMBOLS_FRAME_H
#define STACKTOOLS_SYMBOLS_FRAME_H

#include "base/base.h"
#include "capture/types.h"

/* Where the name comes from. */
enum frame_source {
	FRAME_DWARF, /* a function of the debug information, named by its symbol if it has one */
	FRAME_SYMTAB, /* .symtab of the mapped file or of its debug file */
	FRAME_MINIDEBUG, /* .symtab inside .gnu_debugdata */
	FRAME_DYNSYM,
	FRAME_PLT, /* name@plt, derived from the stub's target */
	FRAME_GOPCLNTAB, /* the table of functions that Go's runtime unwinds by */
	FRAME_PERFMAP, /* written by a JIT compiler to /tmp/perf-PID.map */
	FRAME_JITDUMP, /* written by a JIT compiler to a jitdump file */
	FRAME_STORED, /* stored by the recorder: the file is missing or knows less */
	FRAME_KSYM, /* the capture's own kernel symbols */
	FRAME_SCRIPT, /* a function of the program that an interpreter executes */
	FRAME_FDE, /* no name, but where the function begins, by its call frame information */
	FRAME_MODULE, /* no name: only the place in the module */
	FRAME_RAW, /* only the address */
	FRAME_SOURCES
};

/* A function and the place of execution in it. */
struct frame_call {
	const char *name; /* as shown */
	const char *linkage; /* before demangling, NULL = unknown */
	const char *file; /* source path, NULL = unknown */
	uint32_t line, column; /* 0 = unknown */
};

struct frame {
	uint64_t address; /* as recorded */
	uint64_t offset; /* address - start of the function; 0 without one */
	uint64_t module_offset; /* of the address itself, in the mapped file */
	uint64_t module_address; /* the same as an address of the file, as symbol tables count */
	const char *name; /* NULL = no symbol */
	const char *linkage; /* before demangling, NULL without a symbol */
	const char *runtime; /* the interpreter's language ("python"), of a script frame; else NULL */
	const char *module; /* path, "[vdso]", "//anon"; kernel module name, "bpf"; NULL = unknown */
	const char *file; /* source path, NULL = unknown */
	const char *reason; /* why there is no name or line, or why it is uncertain; NULL = all is well */
	const struct cap_map *map; /* the mapping that it lies in; NULL = none, or not known */
	const struct frame_call *inlined; /* calls inlined into the function, innermost first */
	uint32_t n_inlined;
	uint32_t line, column; /* in FILE, of the address or of the outermost inlined call; 0 = unknown */
	uint32_t in; /* if IN_FILE: the cap_file id of the module */
	enum frame_source source;
	bool exact; /* ADDRESS is a PC, not a return address */
	bool kernel;
	bool scheduler; /* of the scheduler: the kernel leaves it out of a waiting thread's stack */
	bool in_file; /* module is a file, and module_offset is valid */
	bool in_image; /* and so is module_address */
	bool no_start; /* the start of the function is unknown, and so is OFFSET */
};

/* "dwarf", "symtab", "minidebuginfo", "dynsym", "plt", "gopclntab", "perfmap", "jitdump", "stored", "ksym",
 * "fde", "module", "raw" */
const char *frame_source_name(enum frame_source source);

#endif
