/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * text - making foreign bytes safe to print.
 *
 * A comm, a path or a symbol is controlled by the process that is observed.
 * Escaped text is valid UTF-8 without C0, DEL or C1 controls, so that it can
 * neither forge a record (newline) nor drive a terminal (ESC, CSI).
 */
#ifndef STACKTOOLS_TEXT_H
#define STACKTOOLS_TEXT_H

#include "base/base.h"

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

#endif
