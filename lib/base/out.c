/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/out.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define OUT_CAP 65536

int out_init(struct out *o, int fd, struct err *e)
{
	*o = (struct out){ .fd = fd, .cap = OUT_CAP, .p = malloc(OUT_CAP) };
	return o->p ? 0 : err_nomem(e, "an output buffer");
}

void out_free(struct out *o)
{
	free(o->p);
	o->p = NULL;
	o->len = o->cap = 0;
}

static void write_all(struct out *o, const char *p, size_t n)
{
	while (n && !o->code) {
		ssize_t done = write(o->fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			o->code = -errno;
			break;
		}
		p += done;
		n -= (size_t)done;
	}
}

void out_put_slow(struct out *o, const void *p, size_t n)
{
	write_all(o, o->p, o->len);
	o->len = 0;
	if (n > o->cap) {
		write_all(o, p, n);
		return;
	}
	memcpy(o->p, p, n);
	o->len = n;
}

int out_flush(struct out *o, struct err *e)
{
	write_all(o, o->p, o->len);
	o->len = 0;
	return o->code ? err_sys(e, o->code, "cannot write the result") : 0;
}

void out_u64(struct out *o, uint64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + v % 10);
	while (v /= 10);
	out_put(o, digits + at, sizeof(digits) - at);
}

void out_hex(struct out *o, uint64_t v, unsigned int width)
{
	char digits[16];
	size_t at = sizeof(digits);

	do
		digits[--at] = "0123456789abcdef"[v & 15];
	while (v >>= 4);
	for (size_t n = sizeof(digits) - at; n < width; n++)
		out_char(o, ' ');
	out_put(o, digits + at, sizeof(digits) - at);
}

void out_printf(struct out *o, const char *fmt, ...)
{
	char small[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n < sizeof(small)) {
		out_put(o, small, (size_t)n);
		return;
	}
	char *big = malloc((size_t)n + 1);

	if (!big) {
		o->code = o->code ? o->code : -ENOMEM;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(big, (size_t)n + 1, fmt, ap);
	va_end(ap);
	out_put(o, big, (size_t)n);
	free(big);
}

void outtext_put(struct out *o, const char *s, enum text_style style)
{
	char buf[TEXT_ESCAPED_MAX(256)];
	size_t len = strlen(s);

	while (len) {
		size_t n = MIN(len, (size_t)256);

		/* split between characters */
		while (n < len && n > 252 && ((unsigned char)s[n] & 0xc0) == 0x80)
			n--;
		out_put(o, buf, text_escape(buf, sizeof(buf), s, n, style));
		s += n;
		len -= n;
	}
}
