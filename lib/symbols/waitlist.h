/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waitlist - the waits of a capture with their frames, as perf script's text
 * or JSON.
 */
#ifndef STACKTOOLS_WAITLIST_H
#define STACKTOOLS_WAITLIST_H

#include "base/out.h"
#include "symbols/perftext.h"
#include "symbols/stackids.h"

struct waitlist_record {
	uint64_t last_ns;
	const struct cap_sample *sample;
	struct stackids_span kernel, user; /* of `stacks` */
};

/* All of it is the caller's. */
struct waitlist {
	const struct capread *c;
	struct resolve *r; /* resolve_run() is over */
	struct stackids *stacks;
	struct waitlist_record *records; /* in the order in which they are printed */
	size_t n_records;
	struct perftext_totals totals;
	bool json, lines;
};

/* The name of the thread of S; *NS_TID is its number in its own PID namespace, 0 = unknown. */
const char *waitlist_comm(const struct capread *c, const struct cap_sample *s, uint32_t *ns_tid);

/* Head, files that were not used, records. 0 or -ENOMEM; what OUT could not write is told by out_flush(). */
int waitlist_print(const struct waitlist *w, struct out *out, struct err *e);

#endif
