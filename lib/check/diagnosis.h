/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diagnosis - what each tool can do on this machine, why, and what mends it.
 * Floor 8.
 *
 * Every group of checks is run, the live probes beside them in a process of
 * their own, and each tool gets a verdict: impossible where a finding forbids
 * it, degraded where one degrades it, else ready. What was tried decides over
 * what was read: where all live probes succeed, a finding that says they could
 * not is turned into a warning.
 */
#ifndef STACKTOOLS_DIAGNOSIS_H
#define STACKTOOLS_DIAGNOSIS_H

#include "finding.h"
#include "machine.h"

enum verdict_state { VERDICT_READY, VERDICT_DEGRADED, VERDICT_IMPOSSIBLE };

struct verdict {
	enum verdict_state state;
	char why[512]; /* "" when ready */
	char remedy[768];
};

struct diagnosis {
	struct machine machine;
	struct findings findings; /* in the order of their groups */
	struct verdict verdicts[TOOL_COUNT];
};

/*
 * Diagnose the machine at ROOT, which has to live as long as *RET. The live
 * probes are run only where that is the machine itself, in at most LIMIT_MS.
 * Fails where there is no machine at ROOT or no memory. Release *RET with
 * diagnosis_free().
 */
int diagnosis_run(const struct root *root, unsigned int limit_ms, struct diagnosis *ret, struct err *e);
void diagnosis_free(struct diagnosis *d); /* a zeroed one is fine */

const char *verdict_name(enum verdict_state state); /* "ready", "degraded", "impossible" */

#endif
