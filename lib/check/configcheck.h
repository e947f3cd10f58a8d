/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * configcheck - what the kernel was built with, judged.
 *
 * Sources: kconfig.h; the kernel's init/Kconfig, kernel/bpf/Kconfig and
 * security/Kconfig for what an option brings.
 */
#ifndef STACKTOOLS_CONFIGCHECK_H
#define STACKTOOLS_CONFIGCHECK_H

#include "check/finding.h"
#include "check/machine.h"

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void configcheck_run(const struct machine *m, struct findings *f);

#endif
