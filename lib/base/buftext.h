/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buftext - text into a buf: numbers, words, and foreign bytes escaped.
 *
 * For output that is put together by the million: no format strings but in
 * buftext_printf().
 */
#ifndef STACKTOOLS_BUFTEXT_H
#define STACKTOOLS_BUFTEXT_H

#include "base/buf.h"
#include "base/text.h"

#define BUFTEXT_MAX 4096 /* bytes of foreign text that are shown; "..." stands for the rest */

void buftext_str(struct buf *b, const char *s);
void buftext_dec(struct buf *b, uint64_t v, size_t width); /* zeroes to WIDTH, at most 20 */
void buftext_hex(struct buf *b, uint64_t v, size_t width); /* spaces to WIDTH, at most 16; no 0x */
void buftext_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3); /* 255 bytes at most */
void buftext_escaped(struct buf *b, const char *s, enum text_style style);

/* Hex at P, which has 16 bytes, as buftext_hex(); returns its end. */
char *buftext_hex_at(char *p, uint64_t v, size_t width);

/* The LEN bytes at S are ASCII and need no escape in any style. */
bool buftext_is_plain(const char *s, size_t len);

#endif
