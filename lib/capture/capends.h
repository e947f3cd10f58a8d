/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capends - of how many waits the user stack is complete, and how the others
 * ended.
 *
 * Waits that can have no user stack are left aside: those of kernel threads,
 * and all of them where no user stacks were to be recorded.
 */
#ifndef STACKTOOLS_CAPENDS_H
#define STACKTOOLS_CAPENDS_H

#include "base/bytes.h"
#include "capture/capture.h"

/* By waits; sums saturate. */
struct capends {
	uint64_t verdicts[CAP_FAILED + 1]; /* 0: unknown ones */
	uint64_t reasons[CAP_R_COUNT + 1]; /* of those that stopped or failed; the last: unknown ones */
};

void capends_add(struct capends *ends, unsigned int verdict, unsigned int reason, uint64_t waits);

/* The waits that can have a user stack. */
uint64_t capends_waits(const struct capends *ends);

/*
 * "98.11 % of 4231 waits complete; 70 no-row; 10 unverified", without a
 * newline. The share is rounded down: 100 % is said where all are.
 */
void capends_put(struct buf *b, const struct capends *ends);

#endif
