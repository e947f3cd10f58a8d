/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procpriv - the privileges of a recording by /proc: given up for good before
 * anything is read that a recorded process can have written.
 *
 * What looking at others takes is kept by two processes that parse nothing:
 * the looker (lookchild.h) and the opener (openchild.h).
 */
#ifndef STACKTOOLS_PROCPRIV_H
#define STACKTOOLS_PROCPRIV_H

#include "base/bytes.h"
#include "procfs/looker.h"
#include "system/broker.h"
#include "system/drop.h"

struct procpriv {
	struct looker *looker; /* NULL = there is nothing to be kept: one's own rights are all */
	struct opener *opener;
	uint64_t looker_caps, opener_caps; /* what they keep */
	struct privdrop dropped;
	bool told; /* that one of them has ended */
};

/*
 * All capabilities at once, first of all: for a binary that has some which
 * its caller lacks, as it would show by them what the caller may not see.
 */
int procpriv_renounce(struct err *e);

/*
 * Before there is any thread, and after everything else that takes
 * privileges. MEMORY: for --ptrace. A process that cannot be started is told
 * in *WHY (msg "" else), and then our own rights are all.
 */
int procpriv_drop(struct procpriv *p, bool memory, struct err *why, struct err *e);
void procpriv_close(struct procpriv *p); /* a zeroed one is fine */

/* "no capabilities, ...; the process that looks at threads keeps ..." */
void procpriv_put(const struct procpriv *p, struct buf *b);

/* Once when one of the two has ended before its time: true, and why. */
bool procpriv_missed(struct procpriv *p, struct err *why);

#endif
