/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report - a diagnosis for people, for programs and for prove(1).
 *
 * ONLY is the enum finding_tool whose verdict is reported; -1 = all. Untrusted
 * text is escaped.
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
 * Every group of checks runs, in parallel with the live probes (check/live.h),
 * and each tool gets a verdict: impossible if a finding forbids it, degraded if
 * one degrades it, else ready. offcpu-record is ready only in mode btf, degraded
 * in a lesser mode, and impossible if every mode is barred.
 */

enum verdict_state { VERDICT_READY, VERDICT_DEGRADED, VERDICT_IMPOSSIBLE };

struct verdict {
	enum verdict_state state;
	char why[512]; /* "" if ready */
	char remedy[768];
	enum finding_mode mode; /* of offcpu-record, MODE_COUNT if impossible; 0 for other tools */
};

struct diagnosis {
	struct machine machine;
	struct findings findings; /* in the order of their groups */
	char *verifier_log; /* of the recorder's programs that the kernel refused; NULL = none */
	struct verdict verdicts[TOOL_COUNT];
};

/*
 * Diagnose the machine at ROOT, which must live as long as *RET. The live probes
 * run only if that is this machine, each for at most LIMIT_MS, more on a slow
 * machine. Fails if there is no machine at ROOT, or no memory. On success release *RET with diagnosis_free().
 */
struct diagnosis_opts {
	unsigned int limit_ms;
	/* load and list all programs of the recorder, those for interpreters too, which takes up to a second
	 */
	bool all;
	const uint32_t *pids; /* processes of this machine that are to be recorded */
	size_t n_pids;
};

int diagnosis_run(
	const struct root *root, const struct diagnosis_opts *opts, struct diagnosis *ret, struct err *e);
void diagnosis_free(struct diagnosis *d); /* a zeroed one is fine */

/* The mode that offcpu-record selects: the best one that no finding in F bars; MODE_COUNT = none. */
enum finding_mode diagnosis_mode(const struct findings *f);

const char *verdict_name(enum verdict_state state); /* "ready", "degraded", "impossible" */

enum diagreport_style {
	DIAGREPORT_TEXT, /* passed checks in one line per group, cut to 80 columns; problems in full */
	DIAGREPORT_VERBOSE, /* every check */
	DIAGREPORT_QUIET, /* the verdicts, one line each */
};

void diagreport_text(const struct diagnosis *d, enum diagreport_style style, int only, struct out *o);

/* One object, as docs/bpfcheck.1 describes it; STATUS is the exit status. */
void diagreport_json(const struct diagnosis *d, int only, int status, struct out *o);

/* One test per check; the caller writes the plan. */
void diagreport_tap(const struct diagnosis *d, int only, struct tap *t);

#endif
