/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capmode - in which mode a capture was recorded, and what that means for its
 * numbers.
 *
 * Source: the options "mode", "tried" and "frequency" and the counters "procfs.*", see
 * docs/capture.5. A capture of mode procfs holds estimates: /proc was looked at
 * again and again, and whoever shows its waits has to say so.
 */
#ifndef STACKTOOLS_CAPMODE_H
#define STACKTOOLS_CAPMODE_H

#include "base/bytes.h"
#include "capture/capread.h"

struct capmode {
	const char *name; /* "btf", "raw", "procfs"; "" = not said: recorded by an earlier version */
	const char
		*tried; /* why it is no better one, "not btf: ...", a line for each; "" = it was asked for */
	bool best; /* btf, or not said: nothing to be told */
	bool sampled; /* samples, not exact waits; what follows counts only then */
	bool checked; /* schedstat was there for the threads that were recorded */
	uint64_t hz; /* looks a second that were asked for */
	uint64_t looks, late, left_out; /* made; of them, begun too late; not made at all */
	uint64_t estimated_ns; /* off-CPU time by the samples alone */
	uint64_t schedstat_ns; /* the same by the scheduler's account */
};

/* What C says. Strings are C's. */
void capmode_get(const struct capread *c, struct capmode *ret);

/* "raw: not btf: cannot read ..." for all but the best; lines become "; ". No newline. */
void capmode_put_why(struct buf *b, const struct capmode *m);

/*
 * "samples, not exact waits: 495 looks at 99 Hz, checked against schedstat:
 * off-CPU estimated 4.951 s, by schedstat 4.947 s"; nothing for exact ones. No
 * newline.
 */
void capmode_put(struct buf *b, const struct capmode *m);

#endif
