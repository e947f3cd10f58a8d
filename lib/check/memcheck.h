/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memcheck - what the memory of BPF maps counts against, and how tight that is.
 *
 * Sources: since Linux 5.11 BPF memory counts against the memory cgroup of who
 * makes the map, before that against RLIMIT_MEMLOCK of its user. cgroups(7);
 * Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.current) and
 * cgroup-v1/memory.rst (memory.limit_in_bytes, memory.usage_in_bytes) of Linux.
 * A limit above this process's own cgroup counts too, so every one up to the
 * top of what is mounted is looked at, and the tightest decides.
 */
#ifndef STACKTOOLS_MEMCHECK_H
#define STACKTOOLS_MEMCHECK_H

#include "check/finding.h"
#include "check/machine.h"

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void memcheck_run(const struct machine *m, struct findings *f);

#endif
