/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debugcheck - whether lines and inlined calls of the kernel and of programs
 * can be had here.
 *
 * Sources: /sys/kernel/notes, which holds the running kernel's build ID; the
 * places of vmlinux.h; debuginfod(8) for DEBUGINFOD_URLS, and for the servers
 * and packages of the distributions their own manuals.
 */
#ifndef STACKTOOLS_DEBUGCHECK_H
#define STACKTOOLS_DEBUGCHECK_H

#include "check/finding.h"
#include "check/machine.h"

/* Add the findings to F. Reads only under M's root, and DEBUGINFOD_URLS on the machine itself; never blocks.
 */
void debugcheck_run(const struct machine *m, struct findings *f);

#endif
