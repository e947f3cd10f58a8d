/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bytes - reading untrusted bytes, and a growing byte buffer.
 */
#ifndef STACKTOOLS_BASE_BYTES_H
#define STACKTOOLS_BASE_BYTES_H

#include "base/base.h"

#include <string.h>

/*
 * rd - a bounds-checked reader of untrusted input.
 *
 * A read past the end, or of a malformed number, returns 0 and sets `bad`,
 * which stays set: check it once after a group of reads. Fixed-width numbers
 * are little-endian; uleb and sleb are DWARF's LEB128.
 */

struct rd {
	const uint8_t *p;
	const uint8_t *end;
	bool bad;
};

static inline struct rd rd_init(const void *p, size_t len)
{
	return (struct rd){ .p = p, .end = (const uint8_t *)p + len };
}

static inline size_t rd_left(const struct rd *r)
{
	return (size_t)(r->end - r->p);
}

/* A pointer to the next N bytes (N may be 0), or NULL with `bad` set. */
static inline const void *rd_bytes(struct rd *r, size_t n)
{
	const uint8_t *at = r->p;

	if (r->bad || n > rd_left(r)) {
		r->bad = true;
		return NULL;
	}
	r->p += n;
	return at;
}

static inline uint64_t rd_fixed(struct rd *r, size_t n)
{
	const uint8_t *b = rd_bytes(r, n);
	uint64_t v = 0;

	for (size_t i = 0; b && i < n; i++)
		v |= (uint64_t)b[i] << (8 * i);
	return v;
}

static inline uint8_t rd_u8(struct rd *r)
{
	return (uint8_t)rd_fixed(r, 1);
}

static inline uint16_t rd_u16(struct rd *r)
{
	return (uint16_t)rd_fixed(r, 2);
}

static inline uint32_t rd_u32(struct rd *r)
{
	return (uint32_t)rd_fixed(r, 4);
}

static inline uint64_t rd_u64(struct rd *r)
{
	return rd_fixed(r, 8);
}

/* Bits beyond the 64th are an error, so that every number has one meaning. */
static inline uint64_t rd_uleb(struct rd *r)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; !r->bad; shift += 7) {
		uint8_t b = rd_u8(r);

		if (shift > 63 || (shift == 63 && (b & 0x7e)))
			r->bad = true;
		else
			v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			break;
	}
	return r->bad ? 0 : v;
}

/* Like rd_uleb(), but a value of more than 32 bits is an error. */
static inline uint32_t rd_uleb32(struct rd *r)
{
	uint64_t v = rd_uleb(r);

	if (v > UINT32_MAX) {
		r->bad = true;
		return 0;
	}
	return (uint32_t)v;
}

static inline int64_t rd_sleb(struct rd *r)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t b;

	do {
		b = rd_u8(r);
		if (shift > 63) {
			r->bad = true;
			return 0;
		}
		v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80);
	if (shift < 64 && (b & 0x40))
		v |= ~UINT64_C(0) << shift;
	return r->bad ? 0 : (int64_t)v;
}

/*
 * buf - a growing byte buffer, the writing counterpart of rd.
 *
 * When memory runs out, `failed` is set and stays set, and further puts do
 * nothing: check it once before using the bytes.
 */

struct buf {
	uint8_t *p;
	size_t len, cap;
	bool failed;
};

void buf_put(struct buf *b, const void *p, size_t n);
void buf_fixed(struct buf *b, uint64_t v, size_t n); /* little-endian, N bytes */
void buf_uleb(struct buf *b, uint64_t v);
void buf_sleb(struct buf *b, int64_t v);
void buf_str(struct buf *b, const char *s); /* uleb length, then the bytes without NUL; NULL is "" */
void buf_reset(struct buf *b); /* empties B and clears `failed`, but keeps the memory */
void buf_free(struct buf *b); /* releases the bytes, not B itself; NULL is fine */

#endif
