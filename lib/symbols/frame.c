/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/frame.h"

const char *frame_source_name(enum frame_source source)
{
	static const char *const names[] = {
		[FRAME_DWARF] = "dwarf",
		[FRAME_SYMTAB] = "symtab",
		[FRAME_MINIDEBUG] = "minidebuginfo",
		[FRAME_DYNSYM] = "dynsym",
		[FRAME_PLT] = "plt",
		[FRAME_GOPCLNTAB] = "gopclntab",
		[FRAME_PERFMAP] = "perfmap",
		[FRAME_JITDUMP] = "jitdump",
		[FRAME_STORED] = "stored",
		[FRAME_KSYM] = "ksym",
		[FRAME_FDE] = "fde",
		[FRAME_SCRIPT] = "script",
		[FRAME_MODULE] = "module",
		[FRAME_RAW] = "raw",
	};

	return source < ARRAY_LEN(names) ? names[source] : "raw";
}
