/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names - whether addresses of the kernel and of programs can be resolved here.
 */
#ifndef STACKTOOLS_CHECK_NAMES_H
#define STACKTOOLS_CHECK_NAMES_H

#include "check/finding.h"
#include "check/machine.h"

/*
 * symbolcheck - whether kernel addresses can be resolved here.
 *
 * Source: kallsyms_show_value() in the kernel's kernel/ksyms_common.c. With
 * kptr_restrict 0 or 1, processes with CAP_SYSLOG see addresses; with 0, and
 * perf_event_paranoid 1 or less, all processes; with 2, none.
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void symbolcheck_run(const struct machine *m, struct findings *f);

/*
 * debugcheck - whether lines and inlined calls of the kernel and of programs
 * can be resolved here.
 *
 * Sources: /sys/kernel/notes, which contains the running kernel's build ID; the
 * paths of elf/kernelfiles.h; debuginfod(8) for DEBUGINFOD_URLS; the manuals of
 * the distributions for their servers and packages.
 */

/* Add the findings to F. Reads only under M's root, and if that is live DEBUGINFOD_URLS; never blocks. */
void debugcheck_run(const struct machine *m, struct findings *f);

#endif
