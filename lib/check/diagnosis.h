/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diagnosis - what each tool can do on this machine, why, and what mends it.
 *
 * Every group of checks is run, the live probes beside them (livecheck.h), and
 * each tool gets a verdict: impossible where a finding forbids it, degraded
 * where one degrades it, else ready. offcpu-record is ready in its btf mode
 * alone; in a lesser one it is degraded, and impossible where none is left.
 */
#ifndef STACKTOOLS_DIAGNOSIS_H
#define STACKTOOLS_DIAGNOSIS_H

#include "check/finding.h"
#include "check/machine.h"

enum verdict_state { VERDICT_READY, VERDICT_DEGRADED, VERDICT_IMPOSSIBLE };

struct verdict {
	enum verdict_state state;
	char why[512]; /* "" when ready */
	char remedy[768];
	enum finding_mode mode; /* of offcpu-record, MODE_COUNT where impossible; of others 0 */
};

struct diagnosis {
	struct machine machine;
	struct findings findings; /* in the order of their groups */
	char *verifier_log; /* of the recorder's programs that the kernel refused; NULL = of none */
	struct verdict verdicts[TOOL_COUNT];
};

/*
 * Diagnose the machine at ROOT, which has to live as long as *RET. The live
 * probes are run only where that is the machine itself, each in LIMIT_MS, more on a slow one.
 * Fails where there is no machine at ROOT or no memory. Release *RET with
 * diagnosis_free().
 */
int diagnosis_run(const struct root *root, unsigned int limit_ms, struct diagnosis *ret, struct err *e);
void diagnosis_free(struct diagnosis *d); /* a zeroed one is fine */

/* The mode that offcpu-record takes by itself: the best that no finding of F bars. MODE_COUNT: none. */
enum finding_mode diagnosis_mode(const struct findings *f);

const char *verdict_name(enum verdict_state state); /* "ready", "degraded", "impossible" */

#endif
