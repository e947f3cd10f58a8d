/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "capture/stats.h"

#include <string.h>

static void says(struct tap *t, const struct cap_outcomes *ends, const char *want, const char *name)
{
	struct buf b = { 0 };

	cap_outcomes_put(&b, ends, "wait", "waits");
	buf_put(&b, "", 1);
	tap_eq_str(t, (const char *)b.p, want, name);
	buf_free(&b);
}

int main(void)
{
	struct cap_outcomes ends = { 0 };
	struct tap t = { 0 };

	tap_eq_u64(&t, cap_outcomes_waits(&ends), 0, "no waits are counted before any are added");
	cap_outcomes_add(&ends, VERDICT_COMPLETE, REASON_NONE, 9999);
	says(&t, &ends, "100.00 % of 9999 waits complete", "all waits are complete");
	cap_outcomes_add(&ends, VERDICT_STOPPED, REASON_NO_ROW, 1);
	says(&t, &ends, "99.99 % of 10000 waits complete; 1 no-row",
		"a truncated walk is listed by its reason");
	cap_outcomes_add(&ends, VERDICT_COMPLETE, REASON_NONE, 999990000);
	says(&t, &ends, "99.99 % of 1000000000 waits complete; 1 no-row",
		"one wait in a thousand million is not rounded away");
	cap_outcomes_add(&ends, VERDICT_FAILED, REASON_KTHREAD, 5);
	cap_outcomes_add(&ends, VERDICT_FAILED, REASON_NOT_RECORDED, 6);
	tap_eq_u64(&t, cap_outcomes_waits(&ends), 1000000000,
		"waits that cannot have a user stack are not counted");

	ends = (struct cap_outcomes){ 0 };
	cap_outcomes_add(&ends, VERDICT_UNVERIFIED, REASON_NONE, 3);
	cap_outcomes_add(&ends, VERDICT_TRUNCATED, REASON_NONE, 4);
	cap_outcomes_add(&ends, VERDICT_FAILED, REASON_LOST, 5);
	cap_outcomes_add(&ends, VERDICT_STOPPED, REASON_COUNT + 7, 6);
	cap_outcomes_add(&ends, 200, REASON_NONE, 7);
	says(&t, &ends,
		"0.00 % of 25 waits complete; 3 unverified; 4 truncated; 7 unknown; 5 lost; 6 unknown",
		"every other outcome is listed, including unknown ones");
	cap_outcomes_add(&ends, VERDICT_COMPLETE, REASON_NONE, UINT64_MAX);
	tap_eq_u64(&t, cap_outcomes_waits(&ends), UINT64_MAX, "sums saturate");
	ends = (struct cap_outcomes){ 0 };
	cap_outcomes_add(&ends, VERDICT_COMPLETE, REASON_NONE, UINT64_MAX / 2);
	cap_outcomes_add(&ends, VERDICT_UNVERIFIED, REASON_NONE, UINT64_MAX / 2);
	says(&t, &ends, "50.00 % of 18446744073709551614 waits complete; 9223372036854775807 unverified",
		"the share of huge numbers is correct");
	return tap_done(&t);
}
