/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/bitrun.h"

#include <errno.h>

int bitrun_open(struct bitrun *b, uint32_t bits)
{
	*b = (struct bitrun){ .bits = bits, .longest = bits };
	b->words = calloc((size_t)bits / 64 + 1, sizeof(*b->words));
	return b->words ? 0 : -ENOMEM;
}

void bitrun_close(struct bitrun *b)
{
	free(b->words);
	*b = (struct bitrun){ 0 };
}

/* The first number from AT on whose bit is VALUE; the end of the range when there is none. */
static uint32_t next(const struct bitrun *b, uint32_t at, bool value)
{
	const uint64_t flip = value ? 0 : ~UINT64_C(0);
	uint32_t w = at / 64;
	uint64_t word;

	if (at >= b->bits)
		return b->bits;
	word = (b->words[w] ^ flip) & ~UINT64_C(0) << at % 64;
	while (!word && ++w <= (b->bits - 1) / 64)
		word = b->words[w] ^ flip;
	if (!word)
		return b->bits;
	return MIN(w * 64 + (uint32_t)__builtin_ctzll(word), b->bits);
}

static void set(struct bitrun *b, uint32_t at, uint32_t n, bool value)
{
	while (n) {
		uint32_t in = MIN(64 - at % 64, n);
		uint64_t mask = (in == 64 ? ~UINT64_C(0) : (UINT64_C(1) << in) - 1) << at % 64;

		if (value)
			b->words[at / 64] |= mask;
		else
			b->words[at / 64] &= ~mask;
		at += in;
		n -= in;
	}
}

bool bitrun_take(struct bitrun *b, uint32_t n, uint32_t *at)
{
	uint32_t longest = 0;

	if (n > b->longest)
		return false;
	for (uint32_t from = next(b, 0, false), to; from < b->bits; from = next(b, to, false)) {
		to = next(b, from, true);
		longest = MAX(longest, to - from);
		if (to - from < n)
			continue;
		set(b, from, n, true);
		b->used += n;
		*at = from;
		return true;
	}
	b->longest = longest;
	return false;
}

void bitrun_give(struct bitrun *b, uint32_t at, uint32_t n)
{
	set(b, at, n, false);
	b->used -= n;
	b->longest = b->bits - b->used;
}
