/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbolcheck - whether kernel addresses can be named here.
 *
 * Source: kallsyms_show_value() of the kernel's kernel/ksyms_common.c: with
 * kptr_restrict 0 everyone sees addresses if perf_event_paranoid is 1 or less,
 * with 0 or 1 who has CAP_SYSLOG, with 2 nobody.
 */
#ifndef STACKTOOLS_SYMBOLCHECK_H
#define STACKTOOLS_SYMBOLCHECK_H

#include "check/finding.h"
#include "check/machine.h"

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void symbolcheck_run(const struct machine *m, struct findings *f);

#endif
