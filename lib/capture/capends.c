/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capends.h"
#include "base/text.h"

#include <inttypes.h>

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void capends_add(struct capends *ends, unsigned int verdict, unsigned int reason, uint64_t waits)
{
	uint64_t *v, *r = &ends->reasons[MIN(reason, CAP_R_COUNT)];

	if (verdict == CAP_FAILED && (reason == CAP_R_KTHREAD || reason == CAP_R_NOT_ASKED))
		return;
	v = &ends->verdicts[verdict <= CAP_FAILED ? verdict : 0];
	*v = add(*v, waits);
	if (verdict == CAP_STOPPED || verdict == CAP_FAILED)
		*r = add(*r, waits);
}

uint64_t capends_waits(const struct capends *ends)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(ends->verdicts); i++)
		sum = add(sum, ends->verdicts[i]);
	return sum;
}

/* In hundredths of a per cent, rounded down. */
static unsigned int share(uint64_t part, uint64_t whole)
{
	if (!whole || part >= whole)
		return 10000;
	/* no product of 64 bits that could wrap: a loss in the last digit of huge numbers */
	return (unsigned int)(whole > UINT64_MAX / 10000 ? part / (whole / 10000) : part * 10000 / whole);
}

static void put_count(struct buf *b, uint64_t n, const char *what)
{
	if (n)
		buftext_printf(b, "; %" PRIu64 " %s", n, what);
}

void capends_put(struct buf *b, const struct capends *ends)
{
	uint64_t waits = capends_waits(ends);
	unsigned int whole = share(ends->verdicts[CAP_COMPLETE], waits);

	buftext_printf(b, "%u.%02u %% of %" PRIu64 " waits complete", whole / 100, whole % 100, waits);
	put_count(b, ends->verdicts[CAP_UNVERIFIED], capture_verdict_name(CAP_UNVERIFIED));
	put_count(b, ends->verdicts[CAP_TRUNCATED], capture_verdict_name(CAP_TRUNCATED));
	put_count(b, ends->verdicts[0], capture_verdict_name(0));
	for (unsigned int i = 0; i < ARRAY_LEN(ends->reasons); i++)
		put_count(b, ends->reasons[i], capture_reason_name(i));
}
