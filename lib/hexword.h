/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hexword - eight bytes of text at a time. Floor 1.
 *
 * Everything here is inline: it is the inner loop of whatever reads symbol
 * tables and addresses.
 */
#ifndef STACKTOOLS_HEXWORD_H
#define STACKTOOLS_HEXWORD_H

#include "base.h"

#include <string.h>

#define HEXWORD_ONES (~UINT64_C(0) / 255)
#define HEXWORD_HIGHS (HEXWORD_ONES * 0x80)

/*
 * Shift eight lower-case hex digits at P, most significant first, into *V from
 * below; false on any other byte. Reads eight bytes.
 */
static inline bool hexword_shift(const char *p, uint64_t *v)
{
	const uint64_t ones = HEXWORD_ONES;
	uint64_t w, not_digit, not_alpha;

	memcpy(&w, p, sizeof(w));
	/* the high bit of each byte tells: not within '0'..'9', not within 'a'..'f' */
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
