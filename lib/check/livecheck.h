/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * livecheck - what is tried on the machine itself, and what its outcome means
 * to the tools.
 *
 * Two processes, side by side with the checks that read: one tries what takes
 * no privilege, the other what BPF can do, where the capabilities are there.
 */
#ifndef STACKTOOLS_LIVECHECK_H
#define STACKTOOLS_LIVECHECK_H

#include "check/finding.h"
#include "check/machine.h"

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
