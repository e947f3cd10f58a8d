/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * captry - steps done by a process that has exactly the user and the
 * capabilities to be tried.
 *
 * The child gives up everything else for good, supplementary groups, bounding
 * and ambient set included, and sets no_new_privs. It ends when its time is
 * over or its parent is gone (probe.h).
 */
#ifndef STACKTOOLS_CAPTRY_H
#define STACKTOOLS_CAPTRY_H

#include "check/capsteps.h"
#include "check/probe.h"

struct captry {
	const struct capsteps *steps;
	const uint16_t *which; /* N of them, by number, in this order */
	size_t n;
	uid_t uid;
	uint64_t caps; /* 1 << CAP_x */
	const struct capworld *world; /* the one to try on */
	const struct capworld *worlds; /* all of them: none may be held open */
	size_t n_worlds;
};

/*
 * Start T, which has LIMIT_MS for each step and TOTAL_MS for all; end it with probe_finish(), which
 * gives a result for each: its code is 0, -errno, or CAPSTEPS_UNTRIED where
 * the child could not become what is to be tried. T is needed no longer.
 */
int captry_start(const struct captry *t, unsigned int limit_ms, unsigned int total_ms, struct probe_run **ret,
	struct err *e);

/* The capabilities that this process may hand out: its permitted set. */
uint64_t captry_granted(void);

#endif
