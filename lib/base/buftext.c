/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/buftext.h"

#include <stdarg.h>
#include <string.h>

void buftext_str(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buftext_printf(struct buf *b, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buftext_str(b, text);
}

void buftext_dec(struct buf *b, uint64_t v, size_t width)
{
	char digits[20];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + v % 10);
	while (v /= 10);
	while (sizeof(digits) - at < width)
		digits[--at] = '0';
	buf_put(b, digits + at, sizeof(digits) - at);
}

char *buftext_hex_at(char *p, uint64_t v, size_t width)
{
	size_t digits = v ? (size_t)(67 - __builtin_clzll(v)) / 4 : 1;

	for (; width > digits; width--)
		*p++ = ' ';
	for (size_t i = digits; i--; v >>= 4)
		p[i] = "0123456789abcdef"[v & 15];
	return p + digits;
}

void buftext_hex(struct buf *b, uint64_t v, size_t width)
{
	char text[16];

	buf_put(b, text, (size_t)(buftext_hex_at(text, v, width) - text));
}

#define BYTES(c) (UINT64_C(0x0101010101010101) * (c))

/* Not zero where a byte of X is zero; X has no byte above 0x7f. */
static uint64_t zero_bytes(uint64_t x)
{
	return (x - BYTES(1)) & ~x & BYTES(0x80);
}

/*
 * Does S need no escape in any style? Most text does not, and this is asked
 * for every frame: eight bytes at a time. None may be above 0x7e or below
 * 0x21, a quote or a backslash.
 */
bool buftext_is_plain(const char *s, size_t len)
{
	uint64_t bad = 0;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t x = BYTES('a');

		memcpy(&x, s + i, MIN(len - i, (size_t)8));
		bad |= x & BYTES(0x80);
		x &= BYTES(0x7f);
		bad |= zero_bytes(x ^ BYTES(0x7f)) | zero_bytes(x ^ BYTES('"')) | zero_bytes(x ^ BYTES('\\'));
		bad |= ~(x + BYTES(0x80 - 0x21)) & BYTES(0x80);
	}
	return !bad;
}

void buftext_escaped(struct buf *b, const char *s, enum text_style style)
{
	char text[TEXT_ESCAPED_MAX(BUFTEXT_MAX)];
	size_t len = strnlen(s, BUFTEXT_MAX + 1);

	if (len <= BUFTEXT_MAX && buftext_is_plain(s, len)) {
		buf_put(b, s, len);
		return;
	}
	buf_put(b, text, text_escape(text, sizeof(text), s, MIN(len, (size_t)BUFTEXT_MAX), style));
	if (len > BUFTEXT_MAX)
		buftext_str(b, "...");
}
