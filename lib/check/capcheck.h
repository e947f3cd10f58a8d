/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capcheck - capabilities, namespaces, lockdown, seccomp and security modules, judged.
 *
 * Sources: capabilities(7), user_namespaces(7), kernel_lockdown(7), seccomp(2).
 */
#ifndef STACKTOOLS_CAPCHECK_H
#define STACKTOOLS_CAPCHECK_H

#include "check/finding.h"
#include "check/machine.h"

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void capcheck_run(const struct machine *m, struct findings *f);

#endif
