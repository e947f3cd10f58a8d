/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "symbols/resolve.h"

#include <string.h>

/* Sorted as in struct cap_reader: by process, start, from_ns. */
static struct cap_jit pieces[] = {
	{ 1, CAPTURE_JIT_PERFMAP, 0, UINT64_MAX, 0x1000, 0x1040, "map", "", 0, 0 },
	{ 1, CAPTURE_JIT_PERFMAP, 0, UINT64_MAX, 0x1050, 0x1100, "map", "", 0, 0x50 },
	{ 2, CAPTURE_JIT_JITDUMP, 100, 200, 0x1000, 0x1100, "old", "", 0, 0 },
	{ 2, CAPTURE_JIT_JITDUMP, 200, UINT64_MAX, 0x1040, 0x1050, "new", "a.js", 7, 8 },
	{ 2, CAPTURE_JIT_JITDUMP, 300, UINT64_MAX, 0x1060, 0x1070, "late", "", 0, 0 },
	{ 2, CAPTURE_JIT_PERFMAP, 0, UINT64_MAX, 0x1060, 0x1070, "untimed", "", 0, 0 },
};

static const char *name(
	const struct jitnames *n, uint32_t proc, uint64_t addr, uint64_t first, uint64_t last, bool *unsure)
{
	const struct cap_jit *j = jitnames_find(n, proc, addr, first, last, unsure);

	return j ? j->name : "-";
}

static void hostile(struct tap *t)
{
	static struct cap_jit all[100000];
	struct cap_reader c = { .jits = all, .n_jits = ARRAY_LEN(all) };
	struct jitnames *n = NULL;
	size_t found = 0;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i] = (struct cap_jit){ 0, CAPTURE_JIT_PERFMAP, 0, UINT64_MAX, i, i ? i + 1 : UINT64_MAX,
			"x", "", 0, 0 };
	if (jitnames_new(&c, &n, NULL) != 0)
		return;
	for (uint64_t i = 0; i < 100000; i++)
		found += jitnames_find(n, 0, 200000 + i, 0, 0, NULL) != NULL;
	tap_ok(t, found == 0, "a look-up ends without a name if it has to check too many pieces");
	jitnames_free(n);
}

int main(void)
{
	struct tap t = { 0 };
	struct cap_reader c = { .jits = pieces, .n_jits = ARRAY_LEN(pieces) }, none = { 0 };
	struct jitnames *n = NULL;
	bool unsure = true;

	tap_ok(&t, jitnames_new(&c, &n, NULL) == 0, "the table is made from the pieces of a capture");
	tap_eq_str(&t, name(n, 1, 0x103f, 5, 5, &unsure), "map", "a piece without times applies at any time");
	tap_ok(&t, !unsure, "the name of a piece without times is certain");
	tap_eq_str(&t, name(n, 1, 0x1048, 5, 5, NULL), "-", "an address between two pieces has no name");
	tap_eq_str(&t, name(n, 1, 0xfff, 5, 5, NULL), "-", "an address before all pieces has no name");
	tap_eq_str(&t, name(n, 1, 0x1100, 5, 5, NULL), "-", "an address after all pieces has no name");
	tap_eq_str(&t, name(n, 0, 0x1000, 5, 5, NULL), "-",
		"an address in a process before the others has no name");
	tap_eq_str(&t, name(n, 3, 0x1000, 5, 5, NULL), "-",
		"an address in a process after the others has no name");
	tap_eq_str(&t, name(n, 2, 0x1048, 150, 160, &unsure), "old",
		"the code at the time of the sample gives the name");
	tap_ok(&t, !unsure, "the name of the only code during the sample is certain");
	tap_eq_str(&t, name(n, 2, 0x1048, 250, 260, &unsure), "new",
		"later code gives the name at a later time");
	tap_eq_str(&t, name(n, 2, 0x1048, 150, 250, &unsure), "old",
		"if the code changed during the sample, the first one gives the name");
	tap_ok(&t, unsure, "the name is unsure if the code changed during the sample");
	tap_eq_str(&t, name(n, 2, 0x1030, 150, 250, &unsure), "old",
		"code that ended during the sample gives the name");
	tap_ok(&t, unsure, "the name is unsure if the code ended during the sample");
	tap_eq_str(&t, name(n, 2, 0x1048, 50, 60, NULL), "-", "a sample before any code has no name");
	tap_eq_str(&t, name(n, 2, 0x1048, 50, 120, NULL), "old",
		"code that appeared during the sample gives the name");
	tap_eq_str(&t, name(n, 2, 0x1068, 310, 320, &unsure), "late", "a jitdump is preferred to a perf map");
	tap_ok(&t, !unsure, "a name that a perf map has as well is certain");
	tap_eq_str(&t, name(n, 2, 0x1068, 250, 260, NULL), "untimed",
		"a perf map gives the name if the jitdump has none");
	jitnames_free(n);
	tap_ok(&t, jitnames_new(&none, &n, NULL) == 0 && !jitnames_find(n, 0, 0, 0, 0, &unsure) && !unsure,
		"a capture without JIT code has no names");
	jitnames_free(n);
	hostile(&t);
	return tap_done(&t);
}
