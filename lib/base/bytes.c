/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/bytes.h"

#include <string.h>

void buf_put(struct buf *b, const void *p, size_t n)
{
	if (b->failed || !n)
		return;
	if (n > b->cap - b->len && base_grow(&b->p, &b->cap, b->len + n, 1) != 0) {
		b->failed = true;
		return;
	}
	memcpy(b->p + b->len, p, n);
	b->len += n;
}

void buf_fixed(struct buf *b, uint64_t v, size_t n)
{
	uint8_t le[8];

	for (size_t i = 0; i < n; i++)
		le[i] = (uint8_t)(v >> (8 * i));
	buf_put(b, le, n);
}

void buf_uleb(struct buf *b, uint64_t v)
{
	uint8_t out[10];
	size_t n = 0;

	do {
		out[n] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
		n++;
		v >>= 7;
	} while (v);
	buf_put(b, out, n);
}

void buf_sleb(struct buf *b, int64_t v)
{
	uint8_t out[10];
	size_t n = 0;
	bool more;

	do {
		uint8_t low = (uint8_t)(v & 0x7f);

		v >>= 7; /* an arithmetic shift: gcc and clang define it so */
		more = !((v == 0 && !(low & 0x40)) || (v == -1 && (low & 0x40)));
		out[n++] = (uint8_t)(low | (more ? 0x80 : 0));
	} while (more);
	buf_put(b, out, n);
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
