/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/hash.h"
#include "base/tap.h"

#include <string.h>

/* The reference: one bit at a time, directly from the polynomial. */
static uint32_t bitwise(uint32_t crc, const uint8_t *p, size_t n)
{
	for (crc = ~crc; n; p++, n--) {
		crc ^= *p;
		for (int i = 0; i < 8; i++)
			crc = crc & 1 ? crc >> 1 ^ UINT32_C(0x82f63b78) : crc >> 1;
	}
	return ~crc;
}

static bool all_agree(const uint8_t *bytes, size_t max)
{
	for (size_t from = 0; from < 9; from++) {
		for (size_t n = 0; n + from <= max; n++) {
			uint32_t want = bitwise(0, bytes + from, n);

			if (crc32c(0, bytes + from, n) != want || crc32c_portable(0, bytes + from, n) != want)
				return false;
		}
	}
	return true;
}

static bool parts_agree(const uint8_t *bytes, size_t max)
{
	uint32_t whole = crc32c(0, bytes, max);

	for (size_t n = 0; n <= max; n++)
		if (crc32c(crc32c(0, bytes, n), bytes + n, max - n) != whole ||
			crc32c_portable(crc32c(0, bytes, n), bytes + n, max - n) != whole)
			return false;
	return true;
}

int main(void)
{
	static const uint8_t zeros[32];
	uint8_t bytes[300], ones[32], up[32], down[32];
	struct tap t = { 0 };
	uint32_t seed = 1;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
	for (size_t i = 0; i < 32; i++)
		ones[i] = 0xff, up[i] = (uint8_t)i, down[i] = (uint8_t)(31 - i);
	tap_eq_u64(&t, crc32c(0, "123456789", 9), 0xe3069283, "the check value is correct");
	tap_eq_u64(&t, crc32c_portable(0, "123456789", 9), 0xe3069283,
		"the check value without the instruction is correct");
	tap_eq_u64(&t, crc32c(0, "", 0), 0, "the checksum of no bytes is 0");
	/* RFC 3720, B.4 */
	tap_eq_u64(&t, crc32c(0, zeros, 32), 0x8a9136aa, "the checksum of 32 bytes of 0 is correct");
	tap_eq_u64(&t, crc32c(0, ones, 32), 0x62a8ab43, "the checksum of 32 bytes of 0xff is correct");
	tap_eq_u64(&t, crc32c(0, up, 32), 0x46dd794e, "the checksum of the bytes 0 to 31 is correct");
	tap_eq_u64(&t, crc32c(0, down, 32), 0x113fdb5c, "the checksum of the bytes 31 to 0 is correct");
	tap_ok(&t, all_agree(bytes, sizeof(bytes)),
		"instruction, table and polynomial agree at every length");
	tap_ok(&t, parts_agree(bytes, sizeof(bytes)), "a checksum continued over parts is that of the whole");
	return tap_done(&t);
}
