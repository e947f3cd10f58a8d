/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernelcheck - the kernel's release, and the namespaces that change its numbers.
 *
 * Sources: 5.18 for the helpers of bpf/offcpu.bpf.c (bpf_loop and
 * bpf_copy_from_user_task came last), 5.17 for bpf_loop; time_namespaces(7) for /proc/self/timens_offsets.
 */
#ifndef STACKTOOLS_KERNELCHECK_H
#define STACKTOOLS_KERNELCHECK_H

#include "check/finding.h"
#include "check/machine.h"

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void kernelcheck_run(const struct machine *m, struct findings *f);

#endif
