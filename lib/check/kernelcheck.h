/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernelcheck - the kernel's release and its configuration, judged. Floor 4.
 *
 * Sources: kconfig.h; the kernel's init/Kconfig and kernel/bpf/Kconfig for what
 * an option brings; 5.18 for the helpers of bpf/offcpu.bpf.c (bpf_loop and
 * bpf_copy_from_user_task came last).
 */
#ifndef STACKTOOLS_KERNELCHECK_H
#define STACKTOOLS_KERNELCHECK_H

#include "finding.h"
#include "machine.h"

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void kernelcheck_run(const struct machine *m, struct findings *f);

#endif
