/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * live - what is tried on the machine itself, and what its outcome means
 * to the tools.
 *
 * Two processes, side by side with the checks that read: one tries what takes
 * no privilege, the other what BPF can do, where the capabilities are there.
 */
#ifndef STACKTOOLS_CHECK_LIVE_H
#define STACKTOOLS_CHECK_LIVE_H

#include "check/finding.h"
#include "check/machine.h"
#include "check/probe.h"

/*
 * confinement - which layers really hold the processes that parse files of
 * traced processes (system/sandbox.h).
 *
 * A process enters the sandbox as a parser does, and its parent reads off its
 * /proc/PID/status what it has become. No forbidden system call is made: the
 * kernel would log whom the filter kills. Another process enters the Landlock
 * layer alone, and tries to open a file.
 */

struct confinement {
	bool no_caps; /* no capability is left, and none can be had */
	bool other_user; /* it was root and is nobody */
	bool seccomp; /* a filter of system calls is in force */
	bool landlock; /* a path that is there cannot be opened */
};

/* Try it. -errno with the message when the sandbox cannot even be entered. */
int confinement_try(struct confinement *ret, struct err *e);

/*
 * As probe_fn: what holds, in words. -EOPNOTSUPP with the message when neither
 * seccomp nor Landlock does; other codes are confinement_try()'s.
 */
int confinement_probe(char *found, size_t cap, struct err *e);

struct livecheck;

/*
 * Begin; each attempt may take LIMIT_MS, more on a slow machine (probe_limit_ms()). On a recorded tree
 * nothing is begun, and every finding will be a skip. NULL when memory runs out. End it with livecheck_end().
 */
struct livecheck *livecheck_begin(const struct machine *m, unsigned int limit_ms);

/* Add the findings of what takes no privilege (groups security and mounts): waits for them. */
void livecheck_open(struct livecheck *lc, struct findings *f);

/*
 * Add those of BPF (group live), and release LC. What was tried decides over
 * what was read: where the recorder's programs of a mode really load, findings
 * that bar that mode become warnings. *LOG is what the verifier said of the
 * recorder's programs that it refused, to be freed; NULL where it refused none.
 * LC NULL adds nothing.
 */
void livecheck_end(struct livecheck *lc, char **log, struct findings *f);

#endif
