/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mountcheck - file systems that tools read through, and memory accounting, judged. Floor 4.
 *
 * Sources: proc(5) for mounts, hidepid and limits; cgroups(7); since Linux 5.11
 * BPF memory counts against the memory cgroup, before that against RLIMIT_MEMLOCK.
 */
#ifndef STACKTOOLS_MOUNTCHECK_H
#define STACKTOOLS_MOUNTCHECK_H

#include "finding.h"
#include "machine.h"

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void mountcheck_run(const struct machine *m, struct findings *f);

#endif
