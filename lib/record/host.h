/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host - the capture's description of the machine it was made on.
 * Sources: uname(2), /proc/sys/kernel, /sys/kernel/notes, /proc/kallsyms.
 */
#ifndef STACKTOOLS_RECORD_HOST_H
#define STACKTOOLS_RECORD_HOST_H

#include "capture/writer.h"

/*
 * Write the host record. START_NS is the recording's start, CLOCK_MONOTONIC.
 * KALLSYMS is /proc/kallsyms open for reading; -1: open it here. With MASK, a
 * known _stext is replaced by KERNEL_MASK_STEXT (record/stacks.h).
 */
int cap_host_write(struct cap_writer *w, uint64_t start_ns, int kallsyms, bool mask, struct err *e);

#endif
