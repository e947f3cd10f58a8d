/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * idmap - a hash map from 128-bit keys to small numbers.
 *
 * Open addressing, linear probing, no deletion. Keys are mixed before use, so
 * plain addresses and counters may be keys.
 */
#ifndef STACKTOOLS_IDMAP_H
#define STACKTOOLS_IDMAP_H

#include "base/base.h"

struct idmap_slot {
	uint64_t hi, lo;
	uint32_t value;
	bool used;
};

struct idmap {
	struct idmap_slot *slots;
	size_t cap, used; /* cap is a power of two */
};

/*
 * The value kept for (HI, LO). When there is none, VALUE is put there and
 * *ADDED (may be NULL) set. UINT32_MAX when memory ran out.
 */
uint32_t idmap_put(struct idmap *m, uint64_t hi, uint64_t lo, uint32_t value, bool *added);

/* The slot of (HI, LO) or NULL; its value may be changed. Valid until the next put. */
struct idmap_slot *idmap_find(const struct idmap *m, uint64_t hi, uint64_t lo);

void idmap_free(struct idmap *m); /* a zeroed one is an empty map */

#endif
