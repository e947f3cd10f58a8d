/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mountcheck - file systems that tools read through, judged.
 *
 * Source: proc(5) for mounts, hidepid and subset.
 */
#ifndef STACKTOOLS_MOUNTCHECK_H
#define STACKTOOLS_MOUNTCHECK_H

#include "check/finding.h"
#include "check/machine.h"

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void mountcheck_run(const struct machine *m, struct findings *f);

#endif
