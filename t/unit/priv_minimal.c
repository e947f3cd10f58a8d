/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "check/least_privileges.h"

#include <inttypes.h>

#define BIT(n) (UINT64_C(1) << (n))
#define ALL (BIT(41) - 1)

/* The most powerful first. */
static const int order[] = { 21, 24, 2, 40, 19, 34, 38, 39 };

/* Works with any set that includes one of `enough` (ALL = unused) and no bit of `poison`. */
struct made_up {
	uint64_t enough[3];
	uint64_t poison;
	unsigned int requested;
};

static bool works(void *ctx, uint64_t set)
{
	struct made_up *m = ctx;

	m->requested++;
	if (set & m->poison)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(m->enough); i++)
		if (m->enough[i] != ALL && (set & m->enough[i]) == m->enough[i])
			return true;
	return false;
}

static bool find(struct made_up *m, uint64_t from, uint64_t keep, uint64_t *ret)
{
	m->requested = 0;
	return priv_minimal_find(from, keep, order, ARRAY_LEN(order), works, m, ret);
}

/* Does SET work, and no set with one capability less? */
static bool is_minimal(struct made_up *m, uint64_t set)
{
	bool minimal = works(m, set);

	for (int cap = 0; cap < 64; cap++)
		if (set & BIT(cap))
			minimal = minimal && !works(m, set & ~BIT(cap));
	return minimal;
}

static void expect(struct tap *t, struct made_up m, uint64_t keep, uint64_t want, const char *name)
{
	uint64_t got = 0;

	if (!tap_ok(t, find(&m, ALL, keep, &got) && got == want, "%s", name))
		tap_diag("got %#" PRIx64 ", want %#" PRIx64, got, want);
}

static void test_found(struct tap *t)
{
	expect(t, (struct made_up){ { 0, ALL, ALL }, 0, 0 }, 0, 0,
		"if no capability is needed, the set is empty");
	expect(t, (struct made_up){ { BIT(34), ALL, ALL }, 0, 0 }, 0, BIT(34),
		"a single required capability is found");
	expect(t, (struct made_up){ { BIT(38) | BIT(39), ALL, ALL }, 0, 0 }, 0, BIT(38) | BIT(39),
		"two capabilities that are needed together are found");
	expect(t, (struct made_up){ { BIT(21), BIT(38) | BIT(39), ALL }, 0, 0 }, 0, BIT(38) | BIT(39),
		"two weaker capabilities are preferred to one that is equivalent to root");
	expect(t, (struct made_up){ { BIT(1), BIT(2), ALL }, 0, 0 }, 0, BIT(2),
		"a capability in the order is preferred to one that is not");
	expect(t, (struct made_up){ { BIT(1) | BIT(34), ALL, ALL }, 0, 0 }, 0, BIT(1) | BIT(34),
		"a capability that is not in the order is found if it is needed");
	expect(t, (struct made_up){ { BIT(19), ALL, ALL }, 0, 0 }, BIT(39), BIT(19) | BIT(39),
		"a capability that must be kept stays in the set");
}

static void test_absent(struct tap *t)
{
	struct made_up never = { { ALL, ALL, ALL }, 0, 0 };
	struct made_up more = { { BIT(38) | BIT(39), ALL, ALL }, 0, 0 };
	uint64_t got = 77;

	tap_ok(t, !find(&never, ALL, 0, &got) && got == 77, "if no set is sufficient, none is returned");
	tap_eq_u64(t, never.requested, 1, "if no set is sufficient, one attempt shows it");
	tap_ok(t, !find(&more, BIT(38), 0, &got), "a set without a required capability is not sufficient");
	tap_ok(t, find(&more, BIT(38) | BIT(39), 0, &got) && got == (BIT(38) | BIT(39)),
		"a set that is already minimal is returned");
}

/* A larger set may fail where a smaller one works: the kernel's checks need not be monotonic. */
static void test_odd(struct tap *t)
{
	struct made_up m = { { BIT(19) | BIT(40), BIT(39), ALL }, 0, 0 };
	struct made_up poisoned = { { BIT(39), ALL, ALL }, BIT(24), 0 };
	uint64_t got = 0;

	tap_ok(t, find(&m, ALL, 0, &got) && is_minimal(&m, got), "one of several minimal sets is found");
	tap_ok(t, !find(&poisoned, ALL, 0, &got), "if all capabilities together fail, no set is returned");
	tap_ok(t, find(&poisoned, ALL & ~BIT(24), 0, &got) && got == BIT(39) && is_minimal(&poisoned, got),
		"without the capability that makes it fail, the set is found");
}

/* Many combinations of required capabilities. */
static void test_sweep(struct tap *t)
{
	size_t bad = 0, tried = 0;

	for (int a = 0; a < 41; a++) {
		for (int b = a; b < 41; b += 3) {
			struct made_up m = {
				{ BIT(a) | BIT(b), BIT((a + 7) % 41) | BIT(b), BIT((b + 5) % 41) }, 0, 0
			};
			uint64_t got = 0;

			bad += !find(&m, ALL, 0, &got) || !is_minimal(&m, got);
			tried++;
		}
	}
	tap_ok(t, tried > 200 && bad == 0, "every set that is found works and is minimal");
}

int main(void)
{
	struct tap t = { 0 };

	test_found(&t);
	test_absent(&t);
	test_odd(&t);
	test_sweep(&t);
	return tap_done(&t);
}
