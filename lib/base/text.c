/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/text.h"

#include <stdarg.h>
#include <string.h>

size_t text_utf8_len(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	uint32_t cp, least;
	size_t need;

	if (!len)
		return 0;
	if (p[0] < 0x80)
		return p[0] >= 0x20 && p[0] != 0x7f;
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		need = 2, cp = p[0] & 0x1f, least = 0xa0; /* U+0080..9f are the C1 controls */
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		need = 3, cp = p[0] & 0x0f, least = 0x800;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		need = 4, cp = p[0] & 0x07, least = 0x10000;
	} else {
		return 0;
	}
	if (len < need)
		return 0;
	for (size_t i = 1; i < need; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (p[i] & 0x3f);
	}
	if (cp < least || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	/* line and paragraph separators and bidirectional controls are not printable here */
	if ((cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069))
		return 0;
	return need;
}

bool text_is_space(const char *p, size_t len)
{
	static const char spaces[][4] = { "\xe1\x9a\x80", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80",
		"\xef\xbb\xbf" };

	if (len == 1)
		return *p == ' ';
	if (len == 2)
		return memcmp(p, "\xc2\xa0", 2) == 0;
	if (len != 3)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
		if (memcmp(p, spaces[i], 3) == 0)
			return true;
	}
	/* U+2000 to U+200A */
	return memcmp(p, "\xe2\x80", 2) == 0 && (unsigned char)p[2] <= 0x8a;
}

/* The escape for the byte C in STYLE, or "" if C needs none. */
static const char *escape_byte(unsigned char c, bool printable, enum text_style style, char out[8])
{
	out[0] = '\0';
	if (style == TEXT_JSON) {
		if (c == '"' || c == '\\')
			snprintf(out, 8, "\\%c", c);
		else if (!printable && c < 0x80)
			snprintf(out, 8, "\\u%04x", c);
		else if (!printable)
			snprintf(out, 8, "\\ufffd");
	} else if (c == '\\') {
		snprintf(out, 8, "\\\\");
	} else if (!printable) {
		snprintf(out, 8, "\\x%02x", c);
	}
	return out;
}

size_t text_escape(char *dst, size_t cap, const char *src, size_t len, enum text_style style)
{
	size_t used = 0;

	if (!cap)
		return 0;
	for (size_t i = 0; i < len;) {
		size_t n = text_utf8_len(src + i, len - i);
		char buf[8];
		const char *esc, *piece;
		size_t piece_len;

		if (style == TEXT_WORD && text_is_space(src + i, n))
			n = 0;
		esc = escape_byte((unsigned char)src[i], n != 0, style, buf);
		piece = *esc ? esc : src + i;
		piece_len = *esc ? strlen(esc) : n;
		if (used + piece_len + 1 > cap)
			break;
		memcpy(dst + used, piece, piece_len);
		used += piece_len;
		i += n ? n : 1;
	}
	dst[used] = '\0';
	return used;
}

char *text_hex(char *dst, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		dst[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		dst[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
	dst[2 * n] = '\0';
	return dst;
}

#define BUFTEXT_MAX 4096 /* bytes of text that are printed; "..." replaces the rest */

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

void buftext_count(struct buf *b, uint64_t n, const char *one, const char *many)
{
	buftext_dec(b, n, 1);
	buftext_str(b, " ");
	buftext_str(b, n == 1 ? one : many);
}

void buftext_seconds(struct buf *b, uint64_t ns)
{
	uint64_t ms = ns / 1000000 + (ns % 1000000 >= 500000);

	buftext_dec(b, ms / 1000, 1);
	buftext_str(b, ".");
	buftext_dec(b, ms % 1000, 3);
	buftext_str(b, " s");
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

/* Nonzero if a byte of X is zero; X must have no byte above 0x7f. */
static uint64_t zero_bytes(uint64_t x)
{
	return (x - BYTES(1)) & ~x & BYTES(0x80);
}

/*
 * Tests eight bytes at a time, because most text is plain and this runs for
 * every frame. A byte above 0x7e or below 0x21, a double quote and a backslash
 * are not plain.
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
