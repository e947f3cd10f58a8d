/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static void set_message(struct err *e, int code, const char *fmt, va_list ap)
{
	e->code = code;
	e->hint[0] = '\0';
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	va_start(ap, fmt);
	set_message(e, code, fmt, ap);
	va_end(ap);
	return code;
}

int err_sys(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	if (!e)
		return code;
	va_start(ap, fmt);
	set_message(e, code, fmt, ap);
	va_end(ap);
	len = strlen(e->msg);
	snprintf(e->msg + len, sizeof(e->msg) - len, ": %s", strerror(code < 0 ? -code : code));
	return code;
}

void err_hint(struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return;
	va_start(ap, fmt);
	vsnprintf(e->hint, sizeof(e->hint), fmt, ap);
	va_end(ap);
}

void err_prefix(struct err *e, const char *fmt, ...)
{
	char old[sizeof(e->msg)];
	va_list ap;
	size_t len;

	if (!e)
		return;
	memcpy(old, e->msg, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	len = strlen(e->msg);
	snprintf(e->msg + len, sizeof(e->msg) - len, ": %s", old);
}

int err_nomem(struct err *e, const char *what)
{
	return err_set(e, -ENOMEM, "out of memory for %s", what);
}

const char *err_name(int code)
{
	/* negate as unsigned, because the code may come from a file and -INT_MIN overflows */
	const char *name = strerrorname_np(code < 0 ? (int)-(unsigned int)code : code);

	return name ? name : "E?";
}
