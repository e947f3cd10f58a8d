/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * live - attempts on the machine itself, and what their outcome means for the
 * tools.
 *
 * Two processes run in parallel with the checks that read files: one tries what
 * takes no privilege, the other, if the capabilities permit it, what BPF can do.
 */
#ifndef STACKTOOLS_CHECK_LIVE_H
#define STACKTOOLS_CHECK_LIVE_H

#include "check/finding.h"
#include "check/machine.h"
#include "check/probe.h"

/*
 * confinement - which layers really confine the processes that parse files of
 * traced processes (system/sandbox.h).
 *
 * A process enters the sandbox as a parser does; its parent reads the result
 * from its /proc/PID/status. It makes no forbidden system call, because the
 * kernel logs every process that the filter kills. Another process enters the
 * Landlock layer only, and tries to open a path.
 */

struct confinement {
	bool no_caps; /* it has no capability, and cannot gain any */
	bool other_user; /* it was root and is a private user (system/private_user.h) */
	bool seccomp; /* a system call filter is in force */
	bool landlock; /* an existing path cannot be opened */
};

/* Try it. -errno with the message if the sandbox cannot even be entered. */
int confinement_try(struct confinement *ret, struct err *e);

/*
 * As probe_fn: the layers in force, in words. -EOPNOTSUPP with the message if
 * neither seccomp nor Landlock is; other codes are those of confinement_try().
 */
int confinement_probe(char *found, size_t cap, struct err *e);

struct livecheck;

/*
 * Start the attempts; each may take LIMIT_MS, more on a slow machine
 * (probe_limit_ms()). ALL: the recorder's programs for interpreters too. On a recorded tree nothing is
 * started, and every finding will be a skip. NULL if memory runs out. Release with livecheck_end().
 */
struct livecheck *livecheck_begin(const struct machine *m, unsigned int limit_ms, bool all);

/* Wait for the attempts that take no privilege, and add their findings (groups security and mounts). */
void livecheck_open(struct livecheck *lc, struct findings *f);

/*
 * Wait for the attempts with BPF, add their findings (group live), and release
 * LC. An attempt takes precedence over what was read: if the recorder's programs
 * of a mode really load, findings that bar that mode become warnings, except
 * those about capabilities. *LOG is the verifier's log of the recorder's programs
 * that it refused (free it); NULL if it refused none. LC NULL adds nothing.
 */
void livecheck_end(struct livecheck *lc, char **log, struct findings *f);

#endif
