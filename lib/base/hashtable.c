/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/hashtable.h"

#include <errno.h>
#include <string.h>

#define SLOTS_MIN 64

int hashtable_reserve(struct hashtable *t, size_t n)
{
	size_t old = t->slots ? t->mask + 1 : 0, want = old ? old : SLOTS_MIN;
	struct hashtable bigger = { 0 };

	if (n > HASHTABLE_MAX - t->n)
		return -ENOMEM;
	while (want / 2 < t->n + n)
		want *= 2;
	if (want == old)
		return 0;
	bigger.slots = calloc(want, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	bigger.mask = want - 1;
	for (size_t i = 0; i < old; i++)
		if (t->slots[i].index_1)
			hashtable_add(&bigger, (uint64_t)t->slots[i].tag << 32, t->slots[i].index_1 - 1);
	free(t->slots);
	*t = bigger;
	return 0;
}

/*
 * Move the elements that follow into the hole, unless that puts one before its
 * first slot: no slot within a run may be free.
 */
void hashtable_remove(struct hashtable *t, uint64_t hash, uint32_t index)
{
	size_t hole = (uint32_t)(hash >> 32) & t->mask, at;

	while (t->slots[hole].index_1 != index + 1)
		hole = (hole + 1) & t->mask;
	for (at = (hole + 1) & t->mask; t->slots[at].index_1; at = (at + 1) & t->mask) {
		size_t run = (at - t->slots[at].tag) & t->mask; /* distance from its first slot */

		if (run < ((at - hole) & t->mask))
			continue;
		t->slots[hole] = t->slots[at];
		hole = at;
	}
	t->slots[hole] = (struct hashtable_slot){ 0 };
	t->n--;
}

void hashtable_clear(struct hashtable *t)
{
	if (t->slots)
		memset(t->slots, 0, (t->mask + 1) * sizeof(*t->slots));
	t->n = 0;
}

void hashtable_free(struct hashtable *t)
{
	free(t->slots);
	*t = (struct hashtable){ 0 };
}
