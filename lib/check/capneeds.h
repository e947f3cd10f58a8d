/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capneeds - which steps (capsteps.h) each tool takes: what it cannot do
 * without, and what it does worse without. This is the one place that says so.
 */
#ifndef STACKTOOLS_CAPNEEDS_H
#define STACKTOOLS_CAPNEEDS_H

#include "check/finding.h"

struct capneed {
	enum finding_tool tool;
	const char *step; /* the id of one, or "GROUP.*" */
	const char *gain; /* what the tool does with it, in the third person; NULL = it cannot do without */
};

/* All of them, *N. */
const struct capneed *capneeds_list(size_t *n);

/* Is ID the step, or one of the steps, that C is about? */
bool capneed_is(const struct capneed *c, const char *id);

#endif
