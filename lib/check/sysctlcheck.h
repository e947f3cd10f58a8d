/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sysctlcheck - the kernel's settings that BPF and stacks depend on, judged.
 *
 * Sources: Documentation/admin-guide/sysctl/{kernel,net}.rst of Linux, yama.rst.
 */
#ifndef STACKTOOLS_SYSCTLCHECK_H
#define STACKTOOLS_SYSCTLCHECK_H

#include "check/finding.h"
#include "check/machine.h"

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void sysctlcheck_run(const struct machine *m, struct findings *f);

#endif
