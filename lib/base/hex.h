/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hex - parsing several hex digits at a time.
 *
 * Everything is inline: this is the inner loop of the code that reads symbol
 * tables and addresses.
 */
#ifndef STACKTOOLS_BASE_HEX_H
#define STACKTOOLS_BASE_HEX_H

#include "base/base.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define HEXWORD_ONES (~UINT64_C(0) / 255)
#define HEXWORD_HIGHS (HEXWORD_ONES * 0x80)

#if !defined(__SSE2__)
/*
 * Shift eight lower-case hex digits at P, most significant first, into the low
 * end of *V; false on any other byte. Reads eight bytes.
 */
static inline bool hexword_shift(const char *p, uint64_t *v)
{
	const uint64_t ones = HEXWORD_ONES;
	uint64_t w, not_digit, not_alpha;

	memcpy(&w, p, sizeof(w));
	/* a set high bit of a byte means: not within '0'..'9', not within 'a'..'f' */
	not_digit = (w + ones * (0x7f - '9')) | ~(w + ones * (0x80 - '0'));
	not_alpha = (w + ones * (0x7f - 'f')) | ~(w + ones * (0x80 - 'a'));
	if ((w | (not_digit & not_alpha)) & HEXWORD_HIGHS)
		return false;
	w = (w & ones * 0x0f) + (w >> 6 & ones) * 9;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	w = __builtin_bswap64(w);
#endif
	w = (w | w >> 4) & UINT64_C(0x00ff00ff00ff00ff);
	w = (w | w >> 8) & UINT64_C(0x0000ffff0000ffff);
	*v = *v << 32 | (uint32_t)(w | w >> 16);
	return true;
}
#endif

/* Parse sixteen lower-case hex digits at P into *V; false on any other byte. Reads 16 bytes. */
static inline bool hexword_16(const char *p, uint64_t *v)
{
#if defined(__SSE2__)
	const __m128i text = _mm_loadu_si128((const __m128i_u *)p);
	const __m128i num = _mm_sub_epi8(text, _mm_set1_epi8('0')), nine = _mm_set1_epi8(9);
	const __m128i alpha = _mm_sub_epi8(text, _mm_set1_epi8('a')), five = _mm_set1_epi8(5);
	const __m128i is_num = _mm_cmpeq_epi8(_mm_min_epu8(num, nine), num);
	const __m128i is_alpha = _mm_cmpeq_epi8(_mm_min_epu8(alpha, five), alpha);
	const __m128i nibbles = _mm_or_si128(
		_mm_and_si128(is_num, num), _mm_and_si128(is_alpha, _mm_add_epi8(alpha, _mm_set1_epi8(10))));
	/* the first byte of each pair is the high nibble */
	const __m128i pairs = _mm_and_si128(
		_mm_or_si128(_mm_slli_epi16(nibbles, 4), _mm_srli_epi16(nibbles, 8)), _mm_set1_epi16(0xff));

	*v = __builtin_bswap64((uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs)));
	return _mm_movemask_epi8(_mm_or_si128(is_num, is_alpha)) == 0xffff;
#else
	*v = 0;
	return hexword_shift(p, v) && hexword_shift(p + 8, v);
#endif
}

#endif
