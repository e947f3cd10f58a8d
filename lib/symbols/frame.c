/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frame.h"

const char *frame_source_name(enum frame_source source)
{
	static const char *const names[] = {
		[FRAME_SYMTAB] = "symtab",
		[FRAME_DYNSYM] = "dynsym",
		[FRAME_DEBUG] = "debug",
		[FRAME_KSYM] = "ksym",
		[FRAME_RAW] = "raw",
		[FRAME_NONE] = "none",
	};

	return source < ARRAY_LEN(names) ? names[source] : "none";
}
