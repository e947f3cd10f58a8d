/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bitrun - numbers of a small range, taken and given back by runs, lowest
 * place first.
 *
 * A bit a number. Neighbours that are given back make one run again without
 * any work, and nothing but the bits is kept, so giving back cannot fail.
 */
#ifndef STACKTOOLS_BITRUN_H
#define STACKTOOLS_BITRUN_H

#include "base/base.h"

struct bitrun {
	uint64_t *words;
	uint32_t bits;
	uint32_t used; /* how many are taken */
	uint32_t longest; /* no free run is longer */
};

/* BITS numbers from 0, all free. -ENOMEM. Release with bitrun_close(). */
int bitrun_open(struct bitrun *b, uint32_t bits);
void bitrun_close(struct bitrun *b); /* a zeroed one is fine */

/* Take the first run of N (at least one) free numbers, *AT the first of them. False when there is none. */
bool bitrun_take(struct bitrun *b, uint32_t n, uint32_t *at);
void bitrun_give(struct bitrun *b, uint32_t at, uint32_t n);

#endif
