/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "capture/stats.h"

#include <string.h>

static void says(struct tap *t, const struct capends *ends, const char *want, const char *name)
{
	struct buf b = { 0 };

	capends_put(&b, ends);
	buf_put(&b, "", 1);
	tap_eq_str(t, (const char *)b.p, want, name);
	buf_free(&b);
}

int main(void)
{
	struct capends ends = { 0 };
	struct tap t = { 0 };

	tap_eq_u64(&t, capends_waits(&ends), 0, "nothing was added");
	capends_add(&ends, CAP_COMPLETE, CAP_R_NONE, 9999);
	says(&t, &ends, "100.00 % of 9999 waits complete", "all of them");
	capends_add(&ends, CAP_STOPPED, CAP_R_NO_ROW, 1);
	says(&t, &ends, "99.99 % of 10000 waits complete; 1 no-row", "a stopped one, by its reason");
	capends_add(&ends, CAP_COMPLETE, CAP_R_NONE, 999990000);
	says(&t, &ends, "99.99 % of 1000000000 waits complete; 1 no-row",
		"one in a thousand million is not rounded away");
	capends_add(&ends, CAP_FAILED, CAP_R_KTHREAD, 5);
	capends_add(&ends, CAP_FAILED, CAP_R_NOT_ASKED, 6);
	tap_eq_u64(&t, capends_waits(&ends), 1000000000, "what can have no user stack does not count");

	ends = (struct capends){ 0 };
	capends_add(&ends, CAP_UNVERIFIED, CAP_R_NONE, 3);
	capends_add(&ends, CAP_TRUNCATED, CAP_R_NONE, 4);
	capends_add(&ends, CAP_FAILED, CAP_R_LOST, 5);
	capends_add(&ends, CAP_STOPPED, CAP_R_COUNT + 7, 6);
	capends_add(&ends, 200, CAP_R_NONE, 7);
	says(&t, &ends,
		"0.00 % of 25 waits complete; 3 unverified; 4 truncated; 7 unknown; 5 lost; 6 unknown",
		"every other end, those that no one knows too");
	capends_add(&ends, CAP_COMPLETE, CAP_R_NONE, UINT64_MAX);
	tap_eq_u64(&t, capends_waits(&ends), UINT64_MAX, "sums saturate");
	ends = (struct capends){ 0 };
	capends_add(&ends, CAP_COMPLETE, CAP_R_NONE, UINT64_MAX / 2);
	capends_add(&ends, CAP_UNVERIFIED, CAP_R_NONE, UINT64_MAX / 2);
	says(&t, &ends, "50.00 % of 18446744073709551614 waits complete; 9223372036854775807 unverified",
		"the share of huge numbers");
	return tap_done(&t);
}
