/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "check/least_privileges.h"
#include "check/privilege_steps.h"

#include <linux/capability.h>
#include <string.h>

static void test_needs(struct tap *t)
{
	static struct priv_step_list steps;
	size_t n, absent = 0, doubled = 0;
	const struct tool_need *needs = tool_need_list(&n);
	struct err e = { 0 };

	if (!tap_ok(t, priv_step_all(&steps, &e) == 0, "the steps can be listed without privileges"))
		tap_diag("%s", e.msg);
	for (size_t i = 0; i < n; i++) {
		bool found = false;

		for (size_t j = 0; j < steps.n; j++)
			found = found || tool_need_is(&needs[i], steps.list[j].id);
		if (!found)
			tap_diag("%s: no such step", needs[i].step);
		absent += !found;
	}
	tap_eq_u64(t, absent, 0, "every step that a tool needs is tried");
	for (size_t i = 0; i < steps.n; i++)
		for (size_t j = 0; j < i; j++)
			doubled += strcmp(steps.list[i].id, steps.list[j].id) == 0;
	tap_eq_u64(t, doubled, 0, "no two steps have the same name");
	tap_ok(t, steps.list[steps.n - 1].proc == priv_proc_memlock,
		"the step that makes its process unusable for others is the last one");
}

static void test_patterns(struct tap *t)
{
	const struct tool_need all = { .step = "map.*" }, one = { .step = "map.hash" };

	tap_ok(t,
		tool_need_is(&all, "map.hash") && !tool_need_is(&all, "maps") &&
			!tool_need_is(&all, "perf.own"),
		"GROUP.* matches every step of that group");
	tap_ok(t, tool_need_is(&one, "map.hash") && !tool_need_is(&one, "map.hash2"),
		"a name matches only that step");
}

static void test_sets(struct tap *t)
{
	struct priv_set list[PRIV_SET_MAX];
	uint64_t all = (UINT64_C(1) << 41) - 1, seen = 0;
	size_t n = priv_set_list(all, list), out_of_order = 0;
	char buf[512], small[8];

	for (size_t i = 0; i < n; i++)
		seen |= i + 1 < n ? list[i].caps : 0;
	for (size_t i = 0; i < PRIV_SET_CAPS; i++) {
		out_of_order += !(seen & UINT64_C(1) << priv_set_order()[i]);
		out_of_order += priv_set_caps()[i].cap != priv_set_order()[PRIV_SET_CAPS - 1 - i];
	}
	tap_eq_u64(
		t, out_of_order, 0, "each capability is in a set, and one order is the reverse of the other");
	tap_ok(t, list[0].caps == 0 && list[n - 1].caps == all,
		"the first set is empty, the last has everything");
	tap_eq_str(t, priv_set_names(0, buf, sizeof(buf)), "none", "an empty set has the name \"none\"");
	tap_eq_str(t, priv_set_names(UINT64_C(1) << CAP_BPF | 1, buf, sizeof(buf)), "CAP_CHOWN, CAP_BPF",
		"a set is written as its names");
	tap_eq_str(t, priv_set_letters(0, buf, sizeof(buf)), "-", "an empty set has the letter -");
	tap_eq_str(t, priv_set_letters(UINT64_C(1) << CAP_BPF | 1, buf, sizeof(buf)), "B#",
		"capabilities without a letter are written as #");
	tap_ok(t, strlen(priv_set_names(all, small, sizeof(small))) < sizeof(small),
		"names that do not fit are truncated");
}

int main(void)
{
	struct tap t = { 0 };

	test_needs(&t);
	test_patterns(&t);
	test_sets(&t);
	return tap_done(&t);
}
