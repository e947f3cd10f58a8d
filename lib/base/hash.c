/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/hash.h"

#include <string.h>

/*
 * Slicing by eight: slice[k][i] is the contribution of byte I when K more bytes
 * follow. The contribution is linear over xor, so the values for the eight
 * single bits determine a row, and the compiler computes the rest.
 */
#define BIT(n, b, k) ((n) & (1 << (b)) ? (k) : 0)
#define ONE(n, a, b, c, d, e, f, g, h)                                                                       \
	(BIT(n, 0, a) ^ BIT(n, 1, b) ^ BIT(n, 2, c) ^ BIT(n, 3, d) ^ BIT(n, 4, e) ^ BIT(n, 5, f) ^           \
		BIT(n, 6, g) ^ BIT(n, 7, h))
#define FOUR(n, ...)                                                                                         \
	ONE(n, __VA_ARGS__), ONE(n + 1, __VA_ARGS__), ONE(n + 2, __VA_ARGS__), ONE(n + 3, __VA_ARGS__)
#define SIXTEEN(n, ...)                                                                                      \
	FOUR(n, __VA_ARGS__), FOUR(n + 4, __VA_ARGS__), FOUR(n + 8, __VA_ARGS__), FOUR(n + 12, __VA_ARGS__)
#define SIXTYFOUR(n, ...)                                                                                    \
	SIXTEEN(n, __VA_ARGS__), SIXTEEN(n + 16, __VA_ARGS__), SIXTEEN(n + 32, __VA_ARGS__),                 \
		SIXTEEN(n + 48, __VA_ARGS__)
#define TABLE(...)                                                                                           \
	{                                                                                                    \
		SIXTYFOUR(0, __VA_ARGS__), SIXTYFOUR(64, __VA_ARGS__), SIXTYFOUR(128, __VA_ARGS__),          \
			SIXTYFOUR(192, __VA_ARGS__)                                                          \
	}

static const uint32_t slice[8][256] = {
	TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
	TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
	TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
	TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
	TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c),
	TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6),
	TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4),
	TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664),
};

uint32_t crc32c_portable(uint32_t crc, const void *data, size_t n)
{
	const uint8_t *p = data;

	crc = ~crc;
	for (; n >= 8; p += 8, n -= 8) {
		crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
		crc = slice[7][crc & 255] ^ slice[6][crc >> 8 & 255] ^ slice[5][crc >> 16 & 255] ^
		      slice[4][crc >> 24] ^ slice[3][p[4]] ^ slice[2][p[5]] ^ slice[1][p[6]] ^ slice[0][p[7]];
	}
	for (; n; p++, n--)
		crc = crc >> 8 ^ slice[0][(crc ^ *p) & 255];
	return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t with_instruction(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t c = ~crc;

	for (; n >= 8; p += 8, n -= 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		c = __builtin_ia32_crc32di(c, word);
	}
	for (; n; p++, n--)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p);
	return ~(uint32_t)c;
}
#endif

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return with_instruction(crc, p, n);
#endif
	return crc32c_portable(crc, p, n);
}
