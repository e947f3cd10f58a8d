/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hash - a fast 64-bit hash of byte strings, for tables in memory.
 *
 * Folded 64 x 64 -> 128 bit multiplications over four lanes; about 8 bytes per
 * cycle on long input. If the bytes are untrusted input, use a random SEED, so
 * that no one can prepare collisions. The hash differs between byte orders and
 * versions: never store it.
 */
#ifndef STACKTOOLS_BASE_HASH_H
#define STACKTOOLS_BASE_HASH_H

#include "base/base.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_K0 UINT64_C(0x9e3779b97f4a7c15)
#define HASH_K1 UINT64_C(0xc2b2ae3d27d4eb4f)
#define HASH_K2 UINT64_C(0xd6e8feb86659fd93)
#define HASH_K3 UINT64_C(0xa0761d6478bd642f)

static inline uint64_t hash_mul(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t hash_load64(const unsigned char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t hash_load32(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Hash the last bytes, at most 16: the loads overlap instead of running past the end. */
static inline uint64_t hash_tail(const unsigned char *p, size_t n, uint64_t h)
{
	uint64_t a = 0, b = 0;

	if (n >= 8) {
		a = hash_load64(p);
		b = hash_load64(p + n - 8);
	} else if (n >= 4) {
		a = hash_load32(p);
		b = hash_load32(p + n - 4);
	} else if (n) {
		a = (uint64_t)p[0] << 16 | (uint64_t)p[n / 2] << 8 | p[n - 1];
	}
	return hash_mul(a ^ HASH_K1, b ^ h);
}

static inline uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
	const unsigned char *p = bytes;
	uint64_t h = seed ^ HASH_K0;
	size_t n = len;

	if (n > 64) {
		uint64_t h1 = h, h2 = h, h3 = h;

		for (; n > 64; n -= 64, p += 64) {
			h = hash_mul(hash_load64(p) ^ HASH_K0, hash_load64(p + 8) ^ h);
			h1 = hash_mul(hash_load64(p + 16) ^ HASH_K1, hash_load64(p + 24) ^ h1);
			h2 = hash_mul(hash_load64(p + 32) ^ HASH_K2, hash_load64(p + 40) ^ h2);
			h3 = hash_mul(hash_load64(p + 48) ^ HASH_K3, hash_load64(p + 56) ^ h3);
		}
		h ^= hash_mul(h1 ^ HASH_K1, h2 ^ HASH_K2) ^ h3;
	}
	for (; n > 16; n -= 16, p += 16)
		h = hash_mul(hash_load64(p) ^ HASH_K2, hash_load64(p + 8) ^ h);
	h = hash_tail(p, n, h);
	return hash_mul(h ^ HASH_K3, len ^ HASH_K2);
}

/*
 * crc32c - the Castagnoli checksum of RFC 3720 (iSCSI).
 *
 * Polynomial 0x1edc6f41, reflected, initial value and final xor all ones;
 * crc32c(0, "123456789", 9) is 0xe3069283. Detects every single changed byte
 * and every burst error of up to 32 bits in a block.
 */

/* The checksum of N bytes at P, continuing CRC, which is 0 at the start. */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);

/* The same in portable C: crc32c() uses it if the CPU has no instruction for it. */
uint32_t crc32c_portable(uint32_t crc, const void *p, size_t n);

#endif
