/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/proto.h"

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2 };

static void put_key(struct buf *b, uint32_t field, enum wire wire)
{
	buf_uleb(b, (uint64_t)field << 3 | wire);
}

void proto_u64(struct buf *b, uint32_t field, uint64_t v)
{
	put_key(b, field, VARINT);
	buf_uleb(b, v);
}

void proto_fixed64(struct buf *b, uint32_t field, uint64_t v)
{
	put_key(b, field, FIXED64);
	buf_fixed(b, v, 8);
}

void proto_str(struct buf *b, uint32_t field, const void *p, size_t len)
{
	put_key(b, field, BYTES);
	buf_uleb(b, len);
	buf_put(b, p, len);
}

size_t proto_begin(struct buf *b, uint32_t field)
{
	put_key(b, field, BYTES);
	buf_put(b, "", 1); /* the length, if it is one byte */
	return b->len;
}

void proto_end(struct buf *b, size_t at)
{
	const size_t len = b->len - at;
	uint8_t more[10];
	size_t n = 0;

	if (b->failed)
		return;
	for (size_t rest = len; n == 0 || rest; rest >>= 7)
		more[n++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
	if (n > 1) {
		buf_put(b, more, n - 1);
		if (b->failed)
			return;
		memmove(b->p + at + n - 1, b->p + at, len);
	}
	memcpy(b->p + at - 1, more, n);
}
