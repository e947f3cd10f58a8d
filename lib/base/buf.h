/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buf - bytes that grow: the writing twin of rd.
 *
 * When memory runs out, `failed` is set and stays set, and further puts do
 * nothing; check it once before the bytes are used.
 */
#ifndef STACKTOOLS_BUF_H
#define STACKTOOLS_BUF_H

#include "base/base.h"

struct buf {
	uint8_t *p;
	size_t len, cap;
	bool failed;
};

void buf_put(struct buf *b, const void *p, size_t n);
void buf_fixed(struct buf *b, uint64_t v, size_t n); /* little-endian, N bytes */
void buf_uleb(struct buf *b, uint64_t v);
void buf_sleb(struct buf *b, int64_t v);
void buf_str(struct buf *b, const char *s); /* uleb length, then the bytes without NUL; NULL as "" */
void buf_reset(struct buf *b); /* empty, keeps the memory */
void buf_free(struct buf *b); /* releases what it holds, not B itself; NULL is fine */

#endif
