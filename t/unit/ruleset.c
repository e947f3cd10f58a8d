/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The set of rules, read back through the kernel as BPF sees it. */
#include "base/tap.h"
#include "record/unwind_memory.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#define MOST (UNWIND_RULES_MAX - 1)

static struct unwind_rule rule_of(uint32_t i)
{
	return (struct unwind_rule){ .cfa = UNWIND_CFA_REG, .reg = 7, .cfa_off = (int32_t)i, .ra_off = -8 };
}

/* Does the kernel have RULE at NUMBER? */
static bool seen(const struct ruleset *r, uint32_t number, struct unwind_rule rule)
{
	struct unwind_rule there;

	return bpf_map_lookup_elem(ruleset_fd(r), &number, &there) == 0 &&
	       memcmp(&there, &rule, sizeof(rule)) == 0;
}

static void test_sharing(struct tap *t, struct ruleset *r)
{
	const struct unwind_rule a = rule_of(1), b = rule_of(2), zero = { 0 };
	uint16_t one, again, two, none = 9;

	tap_ok(t, ruleset_take(r, &zero, &none) == 0 && none == 0 && ruleset_count(r) == 0,
		"the rule without information has number 0 and is not counted");
	tap_ok(t, ruleset_take(r, &a, &one) == 0 && one != 0, "a rule gets a number other than 0");
	tap_ok(t, ruleset_take(r, &a, &again) == 0 && again == one, "an equal rule gets the same number");
	tap_ok(t, ruleset_take(r, &b, &two) == 0 && two != one && ruleset_count(r) == 2,
		"another rule gets another number");
	tap_ok(t, seen(r, one, a) && seen(r, two, b) && seen(r, 0, zero),
		"BPF sees the rules at their numbers");
	ruleset_give(r, one);
	tap_ok(t, seen(r, one, a) && ruleset_count(r) == 2, "a rule stays while it has a holder");
	ruleset_give(r, one);
	tap_ok(t, seen(r, one, zero) && ruleset_count(r) == 1, "a rule is removed with its last holder");
	ruleset_give(r, two);
	ruleset_give(r, 0);
	tap_eq_u64(t, ruleset_count(r), 0, "returning rule 0 changes nothing");
}

static bool take_all(struct ruleset *r, uint32_t from, uint16_t *numbers)
{
	for (uint32_t i = 0; i < MOST; i++) {
		struct unwind_rule rule = rule_of(from + i);

		if (ruleset_take(r, &rule, &numbers[i]) != 0)
			return false;
	}
	return true;
}

static uint32_t wrong_ones(const struct ruleset *r, uint32_t from, const uint16_t *numbers)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < MOST; i++)
		wrong += !seen(r, numbers[i], rule_of(from + i));
	return wrong;
}

static void test_full(struct tap *t, struct ruleset *r)
{
	_cleanup_free_ uint16_t *numbers = calloc(MOST, sizeof(*numbers));
	struct unwind_rule more = rule_of(MOST + 10), known = rule_of(10);
	uint16_t n = 5;

	if (!numbers)
		return;
	tap_ok(t, take_all(r, 10, numbers), "65,535 distinct rules fit");
	tap_eq_u64(t, ruleset_count(r), MOST, "all distinct rules are counted");
	tap_eq_u64(t, wrong_ones(r, 10, numbers), 0, "BPF sees every rule");
	tap_ok(t, ruleset_take(r, &more, &n) == -ENOSPC && n == 0, "a rule beyond 65,535 does not fit");
	tap_ok(t, ruleset_take(r, &known, &n) == 0 && n == numbers[0],
		"a known rule can be taken when the set is full");
	ruleset_give(r, n);
	for (uint32_t i = 0; i < MOST; i++)
		ruleset_give(r, numbers[(i * 7919ull) % MOST]);
	tap_eq_u64(t, ruleset_count(r), 0, "after all rules are returned, in any order, the set is empty");
	tap_ok(t, take_all(r, 100000, numbers) && wrong_ones(r, 100000, numbers) == 0,
		"65,535 other rules fit after all rules are returned");
}

int main(void)
{
	struct tap t = { 0 };
	struct ruleset *r;
	struct err e;
	int rc = ruleset_open(&r, &e);

	if (rc == -EPERM)
		tap_skip(&t, "unwind rules", "%s", e.msg);
	else if (rc)
		tap_ok(&t, false, "unwind rules: %s", e.msg);
	if (rc)
		return tap_done(&t);
	test_sharing(&t, r);
	test_full(&t, r);
	ruleset_close(r);
	ruleset_close(NULL);
	return tap_done(&t);
}
