/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * text - making foreign bytes safe to print.
 *
 * A comm, a path or a symbol is controlled by the process that is observed.
 * Escaped text is valid UTF-8 without C0, DEL or C1 controls, so that it can
 * neither forge a record (newline) nor drive a terminal (ESC, CSI).
 */
#ifndef STACKTOOLS_BASE_TEXT_H
#define STACKTOOLS_BASE_TEXT_H

#include "base/base.h"
#include "base/bytes.h"

enum text_style {
	TEXT_LINE, /* controls and invalid UTF-8 as \xNN, backslash as \x5c; for lines of text */
	TEXT_WORD, /* as TEXT_LINE, and white space too: a field between spaces */
	TEXT_JSON, /* the inside of a JSON string: \uNNNN for controls, \" and \\; invalid UTF-8 as U+FFFD */
};

/* Room that escaping LEN bytes can need, with the terminating NUL. */
#define TEXT_ESCAPED_MAX(len) ((len)*6 + 1)

/*
 * Write SRC (LEN bytes) escaped into DST of CAP bytes, always terminated, cut
 * between escapes where it does not fit. Returns the length written.
 */
size_t text_escape(char *dst, size_t cap, const char *src, size_t len, enum text_style style);

/*
 * The length of the valid, printable UTF-8 sequence at P (LEN bytes left), or
 * 0 where the first byte has to be escaped. ASCII printables give 1.
 */
size_t text_utf8_len(const char *p, size_t len);

/* The N bytes as 2 * N hexadecimal digits at DST, terminated; returns DST. */
char *text_hex(char *dst, const uint8_t *bytes, size_t n);

/*
 * buftext - text into a buf: numbers, words, and foreign bytes escaped.
 *
 * For output that is put together by the million: no format strings but in
 * buftext_printf().
 */

void buftext_str(struct buf *b, const char *s);
void buftext_dec(struct buf *b, uint64_t v, size_t width); /* zeroes to WIDTH, at most 20 */
void buftext_hex(struct buf *b, uint64_t v, size_t width); /* spaces to WIDTH, at most 16; no 0x */
void buftext_count(struct buf *b, uint64_t n, const char *one, const char *many); /* "1 wait", "2 waits" */
void buftext_seconds(struct buf *b, uint64_t ns); /* "12.345 s", rounded */
void buftext_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3); /* 255 bytes at most */
void buftext_escaped(struct buf *b, const char *s, enum text_style style);

/* Hex at P, which has 16 bytes, as buftext_hex(); returns its end. */
char *buftext_hex_at(char *p, uint64_t v, size_t width);

/* The LEN bytes at S are ASCII and need no escape in any style. */
bool buftext_is_plain(const char *s, size_t len);

#endif
