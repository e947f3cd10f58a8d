/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capblock.h"
#include "base/hash.h"

#include <string.h>

#define BYTE_ORDER_MARK 0x01020304
#define BYTE_ORDER_SWAPPED 0x04030201
#define CRC_LEN 4

static void put_le(uint8_t *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

/* --- the file header --- */

void capblock_put_header(struct buf *b)
{
	size_t at = b->len;

	buf_put(b, CAPBLOCK_MAGIC, CAPBLOCK_MAGIC_LEN);
	buf_fixed(b, BYTE_ORDER_MARK, 4);
	buf_fixed(b, CAPBLOCK_HEADER_LEN, 4);
	buf_fixed(b, CAPBLOCK_MAJOR, 2);
	buf_fixed(b, CAPBLOCK_MINOR, 2);
	if (!b->failed)
		buf_fixed(b, crc32c(0, b->p + at, CAPBLOCK_HEADER_LEN - CRC_LEN), CRC_LEN);
}

enum capblock_header capblock_get_header(const void *bytes, size_t len, struct capblock_version *v)
{
	struct rd r = rd_init(bytes, len), crc;
	uint32_t mark;

	if (!len || memcmp(bytes, CAPBLOCK_MAGIC, MIN(len, CAPBLOCK_MAGIC_LEN)) != 0)
		return CAPBLOCK_FOREIGN;
	if (len < CAPBLOCK_HEADER_LEN)
		return CAPBLOCK_SHORT;
	rd_bytes(&r, CAPBLOCK_MAGIC_LEN);
	mark = rd_u32(&r);
	if (mark == BYTE_ORDER_SWAPPED)
		return CAPBLOCK_BYTE_ORDER;
	v->header_len = rd_u32(&r);
	if (mark != BYTE_ORDER_MARK || v->header_len < CAPBLOCK_HEADER_LEN ||
		v->header_len > CAPBLOCK_HEADER_MAX)
		return CAPBLOCK_DAMAGED;
	v->major = rd_u16(&r);
	v->minor = rd_u16(&r);
	if (len < v->header_len)
		return CAPBLOCK_SHORT;
	crc = rd_init((const uint8_t *)bytes + v->header_len - CRC_LEN, CRC_LEN);
	if (rd_u32(&crc) != crc32c(0, bytes, v->header_len - CRC_LEN))
		return CAPBLOCK_DAMAGED;
	return v->major > CAPBLOCK_MAJOR ? CAPBLOCK_NEWER : CAPBLOCK_OK;
}

/* --- blocks --- */

static uint32_t block_crc(const uint8_t *header, const void *payload, size_t len)
{
	return crc32c(crc32c(0, header, CAPBLOCK_HEAD_LEN - CRC_LEN), payload, len);
}

void capblock_put(
	uint8_t header[CAPBLOCK_HEAD_LEN], unsigned int type, uint32_t seq, const void *payload, size_t len)
{
	put_le(header, CAPBLOCK_SYNC, 4);
	put_le(header + 4, type, 2);
	put_le(header + 6, 0, 2);
	put_le(header + 8, len, 4);
	put_le(header + 12, seq, 4);
	put_le(header + 16, block_crc(header, payload, len), CRC_LEN);
}

bool capblock_get(const uint8_t header[CAPBLOCK_HEAD_LEN], struct capblock *b)
{
	struct rd r = rd_init(header, CAPBLOCK_HEAD_LEN);

	if (rd_u32(&r) != CAPBLOCK_SYNC)
		return false;
	b->type = rd_u16(&r);
	b->flags = rd_u16(&r);
	b->len = rd_u32(&r);
	b->seq = rd_u32(&r);
	b->crc = rd_u32(&r);
	return b->len <= CAPBLOCK_PAYLOAD_MAX;
}

bool capblock_intact(const uint8_t header[CAPBLOCK_HEAD_LEN], const struct capblock *b)
{
	return block_crc(header, header + CAPBLOCK_HEAD_LEN, b->len) == b->crc;
}
