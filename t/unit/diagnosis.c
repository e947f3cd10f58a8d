/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "check/report.h"

#include <string.h>

#define BTF MODE_BIT(MODE_BTF)
#define RAW MODE_BIT(MODE_RAW)
#define PROCFS MODE_BIT(MODE_PROCFS)

static const struct {
	unsigned int bars[3]; /* of three findings */
	enum finding_mode mode;
} table[] = {
	{ { 0, 0, 0 }, MODE_BTF },
	{ { RAW, 0, 0 }, MODE_BTF },
	{ { PROCFS, RAW, 0 }, MODE_BTF },
	{ { 0, BTF, 0 }, MODE_RAW },
	{ { BTF, BTF, PROCFS }, MODE_RAW },
	{ { BTF | RAW, 0, 0 }, MODE_PROCFS },
	{ { BTF, 0, RAW }, MODE_PROCFS },
	{ { BTF, RAW, PROCFS }, MODE_COUNT },
	{ { 0, 0, BTF | RAW | PROCFS }, MODE_COUNT },
};

static void test_table(struct tap *t)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct findings f = { 0 };
		enum finding_mode got;

		for (size_t k = 0; k < 3; k++)
			findings_add(&f, GROUP_KERNEL, FINDING_FAIL, "x", "y")->bars = table[i].bars[k];
		got = diagnosis_mode(&f);
		tap_ok(t, got == table[i].mode, "findings that bar %x, %x and %x leave %s", table[i].bars[0],
			table[i].bars[1], table[i].bars[2], finding_mode_name(table[i].mode));
		findings_free(&f);
	}
}

static void test_names(struct tap *t)
{
	static const char *const names[] = { "btf", "raw", "procfs", "none" };
	bool all = true;

	for (enum finding_mode mode = 0; mode <= MODE_COUNT; mode++)
		all &= strcmp(finding_mode_name(mode), names[mode]) == 0;
	tap_ok(t, all, "modes have the names of --mode");
}

int main(void)
{
	struct tap t = { 0 };

	test_table(&t);
	test_names(&t);
	return tap_done(&t);
}
