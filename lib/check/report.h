/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report - a diagnosis for people, for programs and for prove(1).
 *
 * ONLY is the enum finding_tool whose verdict is told, -1 = all. Foreign text
 * is escaped.
 */
#ifndef STACKTOOLS_CHECK_REPORT_H
#define STACKTOOLS_CHECK_REPORT_H

#include "base/out.h"
#include "base/tap.h"
#include "check/finding.h"
#include "check/machine.h"

/*
 * diagnosis - what each tool can do on this machine, why, and what fixes it.
 *
 * Every group of checks is run, the live probes beside them (check/live.h), and
 * each tool gets a verdict: impossible where a finding forbids it, degraded
 * where one degrades it, else ready. offcpu-record is ready in its btf mode
 * alone; in a lesser one it is degraded, and impossible where none is left.
 */

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

enum diagreport_style {
	DIAGREPORT_TEXT, /* what is in order in a line a group; 80 columns, but for remedies */
	DIAGREPORT_VERBOSE, /* every check */
	DIAGREPORT_QUIET, /* the verdicts, a line each */
};

void diagreport_text(const struct diagnosis *d, enum diagreport_style style, int only, struct out *o);

/* One object, as docs/bpfcheck.1 describes it; STATUS is the exit status. */
void diagreport_json(const struct diagnosis *d, int only, int status, struct out *o);

/* A test a check; the plan is the caller's. */
void diagreport_tap(const struct diagnosis *d, int only, struct tap *t);

#endif
