/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hashtable - a hash table over an array that its caller keeps.
 *
 * A slot holds the index of an element and the upper half of its hash; the
 * elements, their keys and the comparison are the caller's. Equality is the
 * caller's alone: hashes that meet cost time and nothing else. Open
 * addressing, linear probing, at most half of the slots taken. Growing reads
 * the slots alone, one after the other, and asks for no hash again.
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

/* A zeroed one is empty. */
struct hashtable {
	struct hashtable_slot *slots;
	size_t mask; /* number of slots, a power of two, minus one */
	size_t n; /* elements */
};

#define HASHTABLE_NONE UINT32_MAX
#define HASHTABLE_MAX (UINT32_C(1) << 31) /* elements */

/*
 * The element of HASH for which SAME, an expression of its index INDEX, is
 * true; HASHTABLE_NONE where there is none. The upper half of HASH has to be mixed
 * well. SAME is evaluated for few others.
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

/* Make room for N more elements: 0, or -ENOMEM with T as it was. */
int hashtable_reserve(struct hashtable *t, size_t n);

/* Element INDEX, below HASHTABLE_MAX, has HASH. There is room for it, and it is not in T yet. */
static inline void hashtable_add(struct hashtable *t, uint64_t hash, uint32_t index)
{
	uint32_t tag = (uint32_t)(hash >> 32);
	size_t at = tag & t->mask;

	while (t->slots[at].index_1)
		at = (at + 1) & t->mask;
	t->slots[at] = (struct hashtable_slot){ .tag = tag, .index_1 = index + 1 };
	t->n++;
}

/* Take out element INDEX, which was added with HASH. */
void hashtable_remove(struct hashtable *t, uint64_t hash, uint32_t index);

/* For what is looked up soon: fetch its first slot; then the element that it may be, or HASHTABLE_NONE. */
static inline void hashtable_prefetch(const struct hashtable *t, uint64_t hash)
{
	__builtin_prefetch(&t->slots[(uint32_t)(hash >> 32) & t->mask]);
}

static inline uint32_t hashtable_guess(const struct hashtable *t, uint64_t hash)
{
	return t->slots[(uint32_t)(hash >> 32) & t->mask].index_1 - 1;
}

/* Memory that the slots take, in bytes. */
static inline size_t hashtable_bytes(const struct hashtable *t)
{
	return t->slots ? (t->mask + 1) * sizeof(*t->slots) : 0;
}

void hashtable_clear(struct hashtable *t); /* empty again, with the room that it has */
void hashtable_free(struct hashtable *t); /* a zeroed one is fine */

#endif
