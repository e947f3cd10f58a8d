/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names - whether addresses of the kernel and of programs can be named here.
 */
#ifndef STACKTOOLS_CHECK_NAMES_H
#define STACKTOOLS_CHECK_NAMES_H

#include "check/finding.h"
#include "check/machine.h"

/*
 * symbolcheck - whether kernel addresses can be named here.
 *
 * Source: kallsyms_show_value() of the kernel's kernel/ksyms_common.c: with
 * kptr_restrict 0 everyone sees addresses if perf_event_paranoid is 1 or less,
 * with 0 or 1 who has CAP_SYSLOG, with 2 nobody.
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void symbolcheck_run(const struct machine *m, struct findings *f);

/*
 * debugcheck - whether lines and inlined calls of the kernel and of programs
 * can be had here.
 *
 * Sources: /sys/kernel/notes, which holds the running kernel's build ID; the
 * places of elf/kernelfiles.h; debuginfod(8) for DEBUGINFOD_URLS, and for the servers
 * and packages of the distributions their own manuals.
 */

/* Add the findings to F. Reads only under M's root, and DEBUGINFOD_URLS on the machine itself; never blocks.
 */
void debugcheck_run(const struct machine *m, struct findings *f);

#endif
