/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/bytes.h"

#include <string.h>

/* N writable bytes at the end of B, which count once they are added to its length; NULL = no memory. */
static uint8_t *room(struct buf *b, size_t n)
{
	if (!b->failed && n > b->cap - b->len && base_grow(&b->p, &b->cap, b->len + n, 1) != 0)
		b->failed = true;
	return b->failed ? NULL : b->p + b->len;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
	uint8_t *to = n ? room(b, n) : NULL;

	if (!to)
		return;
	memcpy(to, p, n);
	b->len += n;
}

void buf_fixed(struct buf *b, uint64_t v, size_t n)
{
	uint8_t *to = room(b, n);

	for (size_t i = 0; to && i < n; i++)
		to[i] = (uint8_t)(v >> (8 * i));
	b->len += to ? n : 0;
}

#define LEB_MOST 10 /* bytes of a 64-bit number, seven bits in each */

void buf_uleb(struct buf *b, uint64_t v)
{
	uint8_t *to = room(b, LEB_MOST), *end = to;

	if (!to)
		return;
	for (; v > 0x7f; v >>= 7)
		*end++ = (uint8_t)(v | 0x80);
	*end++ = (uint8_t)v;
	b->len += (size_t)(end - to);
}

void buf_sleb(struct buf *b, int64_t v)
{
	uint8_t *to = room(b, LEB_MOST), *end = to;

	if (!to)
		return;
	for (; v < -64 || v > 63; v >>= 7) /* an arithmetic shift: gcc and clang define it so */
		*end++ = (uint8_t)(v | 0x80);
	*end++ = (uint8_t)(v & 0x7f);
	b->len += (size_t)(end - to);
}

void buf_str(struct buf *b, const char *s)
{
	size_t n = s ? strlen(s) : 0;

	buf_uleb(b, n);
	buf_put(b, s, n);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}

void buf_free(struct buf *b)
{
	if (!b)
		return;
	free(b->p);
	*b = (struct buf){ 0 };
}
