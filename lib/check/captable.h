/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * captable - which capabilities every step and every tool takes on this
 * machine, by trying: as root, and as an ordinary user.
 *
 * Each step (capsteps.h) is done with each set (capsets.h) that this process
 * can hand out, by a child that has nothing else. The minimal set of a step or
 * of a tool is searched by further attempts; every statement here was tried.
 * What could not be tried says so, and is in no statement.
 */
#ifndef STACKTOOLS_CAPTABLE_H
#define STACKTOOLS_CAPTABLE_H

#include "check/capneeds.h"
#include "check/capsets.h"
#include "check/captrials.h"

#define CAPTABLE_REASONS 16

/* The least that does; FOUND false: nothing that was tried does. */
struct capleast {
	bool found;
	uint64_t caps;
};

struct capreason {
	int cap;
	char why[512];
};

struct captable_tool {
	struct capleast required; /* with these it does its job */
	struct capreason reasons[CAPTABLE_REASONS]; /* for each member of `required` */
	size_t n_reasons;
	struct capreason useful[CAPTABLE_REASONS]; /* for each of the others that it does more with */
	size_t n_useful;
	char missing[512]; /* what it lacks with everything that is granted here, and why; "" = nothing */
	bool refused; /* of those, one for lack of privilege */
};

struct captable {
	int tool; /* the only one that it is about; -1 = every tool */
	struct captrials trials;
	struct capset sets[CAPSETS_MAX]; /* the first columns of each user's trials */
	size_t n_sets;
	struct capleast least[CAPTRIALS_USERS][CAPSTEPS_MAX]; /* by number of step */
	struct captable_tool tools[CAPTRIALS_USERS][TOOL_COUNT];
};

/*
 * Try everything that TOOL (an enum finding_tool) takes, or with -1 whatever
 * there is to try, in about LIMIT_MS at most: what is left by then was not
 * tried. Nothing of it outlives the call. On success *RET is the caller's.
 */
int captable_run(int tool, unsigned int limit_ms, struct captable **ret, struct err *e);
void captable_free(struct captable *t); /* NULL is fine */

/* Is it about TOOL? */
bool captable_has(const struct captable *t, enum finding_tool tool);

/*
 * For the exit status: 0 when the sets of each tool were found, 1 when
 * something is left open, 2 when nothing could be tried.
 */
int captable_verdict(const struct captable *t);

#endif
