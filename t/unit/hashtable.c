/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/hashtable.h"
#include "base/hash.h"
#include "base/tap.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { N = 100000 };

static uint64_t good(uint32_t key)
{
	return hash_mul(key ^ HASH_K0, HASH_K1);
}

/* All keys collide. */
static uint64_t constant(uint32_t key)
{
	(void)key;
	return UINT64_MAX;
}

/* The search starts at one of the last slots of any table and wraps around its end. */
static uint64_t last(uint32_t key)
{
	return (uint64_t)(UINT32_MAX - key % 3) << 32;
}

/* Like good(), but groups of four keys have the same hash. */
static uint64_t by_four(uint32_t key)
{
	return good(key / 4);
}

/* Find KEY among KEYS: its index is the element. */
static uint32_t find(
	const struct hashtable *t, const uint32_t *keys, uint64_t (*hash)(uint32_t), uint32_t key)
{
	return HASHTABLE_FIND(t, hash(key), i, keys[i] == key);
}

static void many(struct tap *tap, const char *what, uint64_t (*hash)(uint32_t), uint32_t n)
{
	_cleanup_free_ uint32_t *keys = calloc(n, sizeof(*keys));
	struct hashtable t = { 0 };
	unsigned int bad = 0, full = 0;

	for (uint32_t i = 0; i < n; i++) {
		keys[i] = 7 * i;
		bad += find(&t, keys, hash, keys[i]) != HASHTABLE_NONE || hashtable_reserve(&t, 1) != 0;
		hashtable_add(&t, hash(keys[i]), i);
		full += 2 * t.n > t.mask + 1;
	}
	tap_ok(tap, !bad && t.n == n, "%u keys, %s: each key is missing before it is added", n, what);
	tap_eq_u64(tap, full, 0, "at most half of the slots are used at any time");
	for (uint32_t i = 0; i < n; i++) {
		bad += find(&t, keys, hash, 7 * i) != i;
		bad += find(&t, keys, hash, 7 * i + 1) != HASHTABLE_NONE;
	}
	tap_eq_u64(tap, bad, 0, "all added keys are found, and no other key is");
	/* remove two of three */
	for (uint32_t i = 0; i < n; i++)
		if (i % 3)
			hashtable_remove(&t, hash(keys[i]), i);
	for (uint32_t i = 0; i < n; i++)
		bad += find(&t, keys, hash, 7 * i) != (i % 3 ? HASHTABLE_NONE : i);
	tap_ok(tap, !bad && t.n == (n + 2) / 3, "the removed keys are missing, and the others are found");
	for (uint32_t i = 0; i < n; i++)
		if (i % 3)
			hashtable_add(&t, hash(keys[i]), i);
	for (uint32_t i = 0; i < n; i++)
		bad += find(&t, keys, hash, 7 * i) != i;
	tap_ok(tap, !bad && t.n == n, "the removed keys are found after they are added again");
	hashtable_free(&t);
}

static void test_empty(struct tap *tap)
{
	const uint32_t keys[] = { 5 };
	struct hashtable t = { 0 };

	tap_ok(tap, find(&t, keys, good, 5) == HASHTABLE_NONE && !hashtable_bytes(&t),
		"an empty table finds nothing");
	hashtable_clear(&t);
	tap_ok(tap, hashtable_reserve(&t, 1) == 0 && hashtable_guess(&t, good(5)) == HASHTABLE_NONE,
		"an empty table with reserved room finds nothing");
	hashtable_add(&t, good(5), 0);
	tap_ok(tap, find(&t, keys, good, 5) == 0 && hashtable_guess(&t, good(5)) == 0, "an element is found");
	tap_ok(tap, HASHTABLE_FIND(&t, good(5), i, false && i) == HASHTABLE_NONE,
		"a different element with the same hash is not found");
	hashtable_clear(&t);
	tap_ok(tap, find(&t, keys, good, 5) == HASHTABLE_NONE && t.n == 0 && hashtable_bytes(&t),
		"a cleared table is empty and keeps its memory");
	hashtable_free(&t);
	tap_ok(tap, find(&t, keys, good, 5) == HASHTABLE_NONE && !hashtable_bytes(&t),
		"a freed table is empty and has no memory");
	hashtable_free(&t);
}

static void test_full(struct tap *tap)
{
	struct hashtable t = { 0 };
	size_t bytes;

	hashtable_reserve(&t, 1);
	bytes = hashtable_bytes(&t);
	for (uint32_t i = 0; hashtable_bytes(&t) == bytes; i++) {
		hashtable_add(&t, good(i), i);
		hashtable_reserve(&t, 1);
	}
	tap_ok(tap, hashtable_bytes(&t) == 2 * bytes && 2 * t.n == bytes / sizeof(struct hashtable_slot),
		"a table that is half full grows to twice its size");
	hashtable_free(&t);
	hashtable_reserve(&t, N);
	bytes = hashtable_bytes(&t);
	for (uint32_t i = 0; i < N; i++)
		hashtable_add(&t, good(i), i);
	tap_ok(tap,
		hashtable_bytes(&t) == bytes && hashtable_reserve(&t, 0) == 0 && hashtable_bytes(&t) == bytes,
		"a table does not grow while reserved room is filled");
	hashtable_free(&t);
}

#ifndef __SANITIZE_ADDRESS__ /* it needs terabytes of address space */
static int no_memory(void)
{
	const struct rlimit little = { 1 << 30, 1 << 30 };
	const uint32_t keys[] = { 5 };
	struct hashtable t = { 0 };

	if (setrlimit(RLIMIT_AS, &little) != 0 || hashtable_reserve(&t, 1) != 0)
		return 1;
	hashtable_add(&t, good(5), 0);
	return hashtable_reserve(&t, UINT32_C(1) << 30) == -ENOMEM && find(&t, keys, good, 5) == 0 && t.n == 1
		       ? 0
		       : 2;
}
#endif

static void test_memory(struct tap *tap)
{
	struct hashtable t = { 0 };

	tap_ok(tap, hashtable_reserve(&t, (size_t)HASHTABLE_MAX + 1) == -ENOMEM && !hashtable_bytes(&t),
		"reserving more elements than there are indexes is -ENOMEM");
	tap_ok(tap, hashtable_reserve(&t, SIZE_MAX) == -ENOMEM && !hashtable_bytes(&t),
		"reserving SIZE_MAX elements is -ENOMEM");
#ifdef __SANITIZE_ADDRESS__
	tap_skip(tap, "out of memory", "the address sanitizer does not work with a memory limit");
#else
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(no_memory());
	tap_ok(tap, waitpid(child, &status, 0) == child && status == 0,
		"a table does not change if there is no memory to grow");
#endif
}

int main(void)
{
	struct tap tap = { 0 };

	test_empty(&tap);
	test_full(&tap);
	many(&tap, "a good hash", good, N);
	many(&tap, "four with each hash", by_four, N);
	many(&tap, "all with one hash", constant, 2000);
	many(&tap, "around the end of the slots", last, 2000);
	test_memory(&tap);
	return tap_done(&tap);
}
