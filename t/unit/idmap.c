/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/intern.h"
#include "base/tap.h"

enum { N = 100000 };

static bool all_there(const struct idmap *m, uint64_t (*hi)(uint32_t), uint64_t (*lo)(uint32_t))
{
	for (uint32_t i = 0; i < N; i++) {
		struct idmap_slot *s = idmap_find(m, hi(i), lo(i));

		if (!s || s->value != i)
			return false;
	}
	return true;
}

static uint64_t zero(uint32_t i)
{
	(void)i;
	return 0;
}

static uint64_t counter(uint32_t i)
{
	return i;
}

static uint64_t page(uint32_t i)
{
	return 0xffffffff81000000u + (uint64_t)i * 4096;
}

static uint64_t high(uint32_t i)
{
	return (uint64_t)i << 40;
}

static void many(struct tap *t, const char *what, uint64_t (*hi)(uint32_t), uint64_t (*lo)(uint32_t))
{
	struct idmap m = { 0 };
	bool added, good = true;

	for (uint32_t i = 0; i < N; i++)
		good = idmap_put(&m, hi(i), lo(i), i, &added) == i && added && good;
	tap_ok(t, good && m.n == N, "100,000 %s are added", what);
	for (uint32_t i = 0; i < N; i++)
		good = idmap_put(&m, hi(i), lo(i), i + 1, &added) == i && !added && good;
	tap_ok(t, good && m.n == N, "%s that are added again keep their first value", what);
	tap_ok(t, all_there(&m, hi, lo), "%s are found with their values", what);
	tap_ok(t, !idmap_find(&m, 1, UINT64_MAX), "a missing key is not found among %s", what);
	idmap_free(&m);
}

int main(void)
{
	struct tap t = { 0 };
	struct idmap m = { 0 };

	tap_ok(&t, !idmap_find(&m, 0, 0), "an empty map finds nothing, not even key 0");
	idmap_put(&m, 0, 0, 7, NULL);
	tap_eq_u64(&t, idmap_find(&m, 0, 0)->value, 7, "key 0 is a key like any other");
	idmap_put(&m, 1, 0, 8, NULL);
	tap_ok(&t, idmap_find(&m, 0, 0)->value == 7 && idmap_find(&m, 1, 0)->value == 8,
		"the high half is part of the key");
	idmap_find(&m, 0, 0)->value = 9;
	tap_eq_u64(&t, idmap_put(&m, 0, 0, 1, NULL), 9, "a value can be changed in its slot");
	idmap_free(&m);
	tap_ok(&t, !idmap_find(&m, 0, 0), "a freed map is empty");
	many(&t, "counters", zero, counter);
	many(&t, "page addresses", zero, page);
	many(&t, "high halves", high, zero);
	return tap_done(&t);
}
