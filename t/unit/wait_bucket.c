/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The buckets of percentiles: how far the middle of one is from what is in it. */
#include "base/tap.h"
#include "report/waits.h"

int main(void)
{
	struct tap t = { 0 };
	unsigned int far = 0, order = 0, inexact = 0;
	uint64_t state = 1, before = 0;

	for (uint64_t ns = 0; ns < 128; ns++)
		inexact += wait_bucket_ns(wait_bucket(ns)) != ns;
	tap_eq_u64(&t, inexact, 0, "below 128 ns a bucket is one number");
	for (unsigned int i = 0; i < 1000000; i++) {
		uint64_t ns, mid;

		state = state * 6364136223846793005 + 1442695040888963407;
		ns = state >> (i % 64);
		mid = wait_bucket_ns(wait_bucket(ns));
		far += (mid > ns ? mid - ns : ns - mid) > ns / 128;
		order += wait_bucket(ns) > wait_bucket(ns + (ns < UINT64_MAX));
	}
	tap_eq_u64(&t, far, 0, "the middle of a bucket is within 1/128 of each number in it");
	for (unsigned int bit = 0; bit < 64; bit++) {
		for (int d = -2; d <= 2; d++) {
			uint64_t ns = (UINT64_C(1) << bit) + (uint64_t)d;

			order += bit > 2 && d > -2 && wait_bucket(ns) < wait_bucket(ns - 1);
		}
	}
	tap_eq_u64(&t, order, 0, "greater numbers are in no lesser bucket");
	for (uint32_t i = 0; i <= wait_bucket(UINT64_MAX); i++) {
		inexact += wait_bucket(wait_bucket_ns(i)) != i || (i && wait_bucket_ns(i) <= before);
		before = wait_bucket_ns(i);
	}
	tap_eq_u64(&t, inexact, 0, "the middle of a bucket is in it, up to the greatest number");
	return tap_done(&t);
}
