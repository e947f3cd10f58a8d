/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diagreport - a diagnosis for people, for programs and for prove(1).
 *
 * ONLY is the enum finding_tool whose verdict is told, -1 = all. Foreign text
 * is escaped.
 */
#ifndef STACKTOOLS_DIAGREPORT_H
#define STACKTOOLS_DIAGREPORT_H

#include "base/out.h"
#include "base/tap.h"
#include "check/diagnosis.h"

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
