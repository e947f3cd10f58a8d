/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host - what a capture says of the machine it was made on.
 * Sources: uname(2), /proc/sys/kernel, /sys/kernel/notes, /proc/kallsyms.
 */
#ifndef STACKTOOLS_RECORD_HOST_H
#define STACKTOOLS_RECORD_HOST_H

#include "capture/writer.h"

/*
 * Write the host record. START_NS is the recording's start, CLOCK_MONOTONIC;
 * KALLSYMS is open for reading, -1 = the file is opened here. With HIDE kernel
 * addresses are not told: _stext is where record/stacks.h puts it.
 */
int cap_host_write(struct cap_writer *w, uint64_t start_ns, int kallsyms, bool hide, struct err *e);

#endif
