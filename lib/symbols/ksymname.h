/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ksymname - what the name and the type letter of a kernel symbol tell.
 *
 * The linker script (include/asm-generic/vmlinux.lds.h of Linux) puts markers
 * at the ends of sections; objtool and the compiler put __pfx_ and __cfi_
 * symbols on the padding before functions; the build makes aliases by the
 * hundred. Letters are nm(1)'s: lower case is local, t code, w weak.
 */
#ifndef STACKTOOLS_KSYMNAME_H
#define STACKTOOLS_KSYMNAME_H

#include "base/base.h"

#include <string.h>

enum {
	KSYM_CODE = 1,
	KSYM_WEAK = 2,
	KSYM_LOCAL = 4,
	KSYM_MARKER = 8, /* _etext, __entry_text_end, __start_rodata: a place that owns nothing behind it */
};

/* _etext and the like. CODE: the type letter says so; a function may well be called __stop_tty. */
bool ksymname_is_marker(bool code, const char *name, size_t len);

/* The flags of a symbol of TYPE called NAME (LEN bytes, at least 1, no NUL needed). */
static inline unsigned int ksymname_flags(char type, const char *name, size_t len)
{
	char kind = (char)(type | 0x20);
	bool code = kind == 't' || kind == 'w' || kind == 'i', weak = kind == 'w' || kind == 'v';
	/* w and v are weak as well: their case does not tell local from global */
	unsigned int flags = (code ? KSYM_CODE : 0u) | (weak ? KSYM_WEAK : type >= 'a' ? KSYM_LOCAL : 0u);

	/* all markers among code end in "text" or "text_end" */
	if (name[0] == '_' && len >= 4 &&
		(!code || memcmp(name + len - 4, "text", 4) == 0 || memcmp(name + len - 4, "_end", 4) == 0) &&
		ksymname_is_marker(code, name, len))
		flags |= KSYM_MARKER;
	return flags;
}

/*
 * How good a name for its address it is, the lower the better, by: no marker,
 * no start of a code section (_stext), no padding (__pfx_, __cfi_), code
 * before data, strong before weak, global before local, fewer leading
 * underscores, no ia32 system call entry. NAME ends in a NUL.
 */
unsigned int ksymname_rank(unsigned int flags, const char *name);

#endif
