/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capreport - the table of capabilities (captable.h) for people, for programs
 * and for prove(1).
 */
#ifndef STACKTOOLS_CAPREPORT_H
#define STACKTOOLS_CAPREPORT_H

#include "base/out.h"
#include "base/tap.h"
#include "check/captable.h"

enum capreport_style {
	CAPREPORT_TEXT, /* the table, its legend, and what each tool takes; 100 columns at most */
	CAPREPORT_VERBOSE, /* and why steps fail with everything that is granted */
	CAPREPORT_QUIET, /* what each tool takes, a line each */
};

void capreport_text(const struct captable *t, enum capreport_style style, struct out *o);

/* One object, as docs/bpfcheck.1 describes it; STATUS is the exit status. */
void capreport_json(const struct captable *t, int status, struct out *o);

/*
 * A test for each step: passed when a set was found with which it works, failed
 * when there is none and a tool cannot do without, else skipped with the reason.
 */
void capreport_tap(const struct captable *t, struct tap *tap);

#endif
