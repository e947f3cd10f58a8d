/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * confinement - which layers really hold the processes that parse files of
 * traced processes (sandbox.h).
 *
 * A process enters the sandbox as a parser does, and its parent reads off its
 * /proc/PID/status what it has become. No forbidden system call is made: the
 * kernel would log whom the filter kills. Another process enters the Landlock
 * layer alone, and tries to open a file.
 */
#ifndef STACKTOOLS_CONFINEMENT_H
#define STACKTOOLS_CONFINEMENT_H

#include "check/probe.h"

struct confinement {
	bool no_caps; /* no capability is left, and none can be had */
	bool other_user; /* it was root and is nobody */
	bool seccomp; /* a filter of system calls is in force */
	bool landlock; /* a path that is there cannot be opened */
};

/* Try it. -errno with the story when the sandbox cannot even be entered. */
int confinement_try(struct confinement *ret, struct err *e);

/*
 * As probe_fn: what holds, in words. -EOPNOTSUPP with the story when neither
 * seccomp nor Landlock does; other codes are confinement_try()'s.
 */
int confinement_probe(char *found, size_t cap, struct err *e);

#endif
