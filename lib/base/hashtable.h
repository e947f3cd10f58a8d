/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hashtable - a hash table over an array that the caller owns.
 *
 * A slot holds the index of an element and the upper half of its hash. The
 * caller owns the elements and their keys, and alone decides whether two keys
 * are equal: hash collisions only cost time. Open addressing, linear probing,
 * at most half of the slots used. Growing reads only the slots, sequentially,
 * and computes no hash again.
 *
 *	i = HASHTABLE_FIND(&t, hash, i, strcmp(names[i], name) == 0);
 *	if (i == HASHTABLE_NONE && hashtable_reserve(&t, 1) == 0) {
 *		names[n] = name;
 *		hashtable_add(&t, hash, n++);
 *	}
 */
#ifndef STACKTOOLS_BASE_HASHTABLE_H
#define STACKTOOLS_BASE_HASHTABLE_H

#include "base/base.h"

struct hashtable_slot {
	uint32_t tag, index_1; /* the index plus one: a zeroed slot is free */
};

/* A zeroed table is empty. */
struct hashtable {
	struct hashtable_slot *slots;
	size_t mask; /* number of slots, a power of two, minus one */
	size_t n; /* elements */
};

#define HASHTABLE_NONE UINT32_MAX
#define HASHTABLE_MAX (UINT32_C(1) << 31) /* elements */

/*
 * The index of the element with HASH for which SAME, an expression of the index
 * INDEX, is true; HASHTABLE_NONE if there is none. The upper half of HASH must
 * be well mixed; then SAME is evaluated for few other elements.
 */
#define HASHTABLE_FIND(t, hash, index, same)                                                                 \
	({                                                                                                   \
		const struct hashtable_slot *const tf_slots = (t)->slots;                                    \
		const size_t tf_mask = (t)->mask;                                                            \
		const uint32_t tf_tag = (uint32_t)((uint64_t)(hash) >> 32);                                  \
		size_t tf_at = tf_tag & tf_mask;                                                             \
		uint32_t tf_ret = HASHTABLE_NONE;                                                            \
                                                                                                             \
		while (tf_slots && tf_slots[tf_at].index_1) {                                                \
			const uint32_t index = tf_slots[tf_at].index_1 - 1;                                  \
                                                                                                             \
			if (tf_slots[tf_at].tag == tf_tag && (same)) {                                       \
				tf_ret = index;                                                              \
				break;                                                                       \
			}                                                                                    \
			tf_at = (tf_at + 1) & tf_mask;                                                       \
		}                                                                                            \
		tf_ret;                                                                                      \
	})

/* Make room for N more elements: 0, or -ENOMEM with T unchanged. */
int hashtable_reserve(struct hashtable *t, size_t n);

/* Add element INDEX, below HASHTABLE_MAX, with HASH. T must have room for it and must not hold it yet. */
static inline void hashtable_add(struct hashtable *t, uint64_t hash, uint32_t index)
{
	uint32_t tag = (uint32_t)(hash >> 32);
	size_t at = tag & t->mask;

	while (t->slots[at].index_1)
		at = (at + 1) & t->mask;
	t->slots[at] = (struct hashtable_slot){ .tag = tag, .index_1 = index + 1 };
	t->n++;
}

/* Remove element INDEX, which was added with HASH. */
void hashtable_remove(struct hashtable *t, uint64_t hash, uint32_t index);

/* Prefetch the first slot of HASH, for a lookup that follows soon. */
static inline void hashtable_prefetch(const struct hashtable *t, uint64_t hash)
{
	__builtin_prefetch(&t->slots[(uint32_t)(hash >> 32) & t->mask]);
}

/* The element in the first slot of HASH, which may be the one, or HASHTABLE_NONE. */
static inline uint32_t hashtable_guess(const struct hashtable *t, uint64_t hash)
{
	return t->slots[(uint32_t)(hash >> 32) & t->mask].index_1 - 1;
}

/* Memory used by the slots, in bytes. */
static inline size_t hashtable_bytes(const struct hashtable *t)
{
	return t->slots ? (t->mask + 1) * sizeof(*t->slots) : 0;
}

void hashtable_clear(struct hashtable *t); /* empties T, but keeps its room */
void hashtable_free(struct hashtable *t); /* a zeroed table is fine */

#endif
