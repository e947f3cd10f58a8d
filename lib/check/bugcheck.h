/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bugcheck - bugs of the kernel that bite who takes stacks by BPF, by version.
 *
 * Sources of the versions: the kernel's records in the CVE list (CVE-2025-68378
 * for kernel.bug.stackid_overflow), review announcements of stable releases
 * (5.11.14-rc1 for kernel.bug.task_stack), and for kernel.bug.callchain_reuse the
 * series "bpf: Hold the perf callchain entry until used completely" on the
 * kernel's mailing list, December 2025, of which no release is known here.
 *
 * A stable release carries the fixes of its number. A distribution's kernel
 * carries others besides, and its release often hides the number: then
 * /proc/version_signature (Ubuntu) or /proc/version (Debian) tells it, and
 * where nothing does the finding says "may".
 */
#ifndef STACKTOOLS_BUGCHECK_H
#define STACKTOOLS_BUGCHECK_H

#include "check/finding.h"
#include "check/machine.h"

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void bugcheck_run(const struct machine *m, struct findings *f);

#endif
