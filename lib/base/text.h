/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * text - escaping of untrusted bytes for output.
 *
 * The observed process controls its comm, paths and symbols. Escaped text is
 * valid UTF-8 without C0, DEL or C1 controls, so that it can neither forge a
 * record (newline) nor control a terminal (ESC, CSI).
 */
#ifndef STACKTOOLS_BASE_TEXT_H
#define STACKTOOLS_BASE_TEXT_H

#include "base/base.h"
#include "base/bytes.h"

enum text_style {
	TEXT_LINE, /* unprintable bytes and invalid UTF-8 as \xNN, a backslash as two; for lines of text */
	TEXT_WORD, /* like TEXT_LINE, and Unicode's white space too; for fields between spaces */
	TEXT_JSON, /* inside a JSON string: \uNNNN for C0 and DEL, \" and \\; U+FFFD for other unprintable
		      bytes */
};

/* The room that LEN bytes may need after escaping, including the NUL. */
#define TEXT_ESCAPED_MAX(len) ((len)*6 + 1)

/*
 * Escape SRC (LEN bytes) into DST of CAP bytes. DST is always NUL-terminated,
 * and is cut between escapes if it is too small. Returns the length written.
 */
size_t text_escape(char *dst, size_t cap, const char *src, size_t len, enum text_style style);

/*
 * The length of the valid, printable UTF-8 sequence at P (LEN bytes left), 1 for
 * printable ASCII; 0 if the first byte must be escaped.
 */
size_t text_utf8_len(const char *p, size_t len);

/* Whether the sequence of LEN bytes at P, which text_utf8_len() accepts, is white space or the byte order
 * mark. */
bool text_is_space(const char *p, size_t len);

/* Write N bytes as 2 * N hexadecimal digits to DST, with a NUL. Returns DST. */
char *text_hex(char *dst, const uint8_t *bytes, size_t n);

/*
 * buftext - text into a buf: numbers, words, and untrusted bytes escaped.
 *
 * For output with millions of pieces: only buftext_printf() uses a format
 * string.
 */

void buftext_str(struct buf *b, const char *s);
void buftext_dec(struct buf *b, uint64_t v, size_t width); /* zero-padded to WIDTH, at most 20 */
void buftext_hex(struct buf *b, uint64_t v, size_t width); /* space-padded to WIDTH, at most 16; no 0x */
void buftext_count(struct buf *b, uint64_t n, const char *one, const char *many); /* "1 wait", "2 waits" */
void buftext_seconds(struct buf *b, uint64_t ns); /* "12.345 s", rounded */
void buftext_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3); /* 255 bytes at most */
void buftext_escaped(struct buf *b, const char *s, enum text_style style);

/* Like buftext_hex(), into the 16 bytes at P. Returns the end of the text. */
char *buftext_hex_at(char *p, uint64_t v, size_t width);

/* Whether the LEN bytes at S are ASCII and need no escaping in any style. */
bool buftext_is_plain(const char *s, size_t len);

#endif
