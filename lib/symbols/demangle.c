/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/*
 * D names refer back with 'Q', and each reference is expanded by recursion:
 * so many of them bound the text to a few megabytes on its way.
 */
#define D_BACKREFS_MAX 12
#define D_IN_MAX 1024

/* Above 1,024 bytes libiberty wants to be told that deep recursion is fine. */
#define V3_LIMITED_MAX 1000

struct sink {
	char *buf;
	size_t len, cap;
	jmp_buf overflow;
};

/*
 * The callback has no way to say "enough", and the demangler would go on for
 * as long as the hostile name asks. It holds no heap memory while it prints.
 */
static void take(const char *text, size_t n, void *opaque)
{
	struct sink *s = opaque;

	if (!n) /* the Rust demangler ends with an empty piece at NULL */
		return;
	if (n >= s->cap - s->len)
		longjmp(s->overflow, 1);
	memcpy(s->buf + s->len, text, n);
	s->len += n;
}

static size_t by_callback(const char *name, size_t len, char *buf, size_t cap)
{
	struct sink s = { .buf = buf, .cap = MIN(cap, (size_t)DEMANGLE_OUT_MAX) };
	const int params = DMGL_PARAMS | DMGL_ANSI;
	const int deep = len > V3_LIMITED_MAX ? DMGL_NO_RECURSE_LIMIT : 0;

	if (setjmp(s.overflow))
		return 0;
	if (rust_demangle_callback(name, params, take, &s) && s.len)
		return s.len;
	s.len = 0;
	if (name[0] == '_' && name[1] == 'Z' && cplus_demangle_v3_callback(name, params | deep, take, &s))
		return s.len;
	return 0;
}

static size_t d_name(const char *name, size_t len, char *buf, size_t cap)
{
	_cleanup_free_ char *text = NULL;
	size_t refs = 0, n;

	for (size_t i = 0; i < len; i++)
		refs += name[i] == 'Q';
	if (len > D_IN_MAX || refs > D_BACKREFS_MAX)
		return 0;
	text = dlang_demangle(name, DMGL_PARAMS);
	n = text ? strlen(text) : 0;
	if (n >= MIN(cap, (size_t)DEMANGLE_OUT_MAX))
		return 0;
	memcpy(buf, text ? text : "", n);
	return n;
}

size_t demangle(const char *name, char *buf, size_t cap)
{
	size_t len, n = 0;

	if (!cap)
		return 0;
	buf[0] = '\0';
	if (name[0] != '_' || !name[1] || !strchr("ZRD", name[1]))
		return 0;
	len = strnlen(name, DEMANGLE_IN_MAX + 1);
	if (len > DEMANGLE_IN_MAX)
		return 0;
	if (name[1] == 'Z' || name[1] == 'R')
		n = by_callback(name, len, buf, cap);
	else if (name[1] == 'D')
		n = d_name(name, len, buf, cap);
	buf[n] = '\0';
	return n;
}
