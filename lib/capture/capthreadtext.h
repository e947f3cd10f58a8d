/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capthreadtext - the threads of a capture, by their ids in the recorder's PID
 * namespace and in their own, as lines.
 */
#ifndef STACKTOOLS_CAPTHREADTEXT_H
#define STACKTOOLS_CAPTHREADTEXT_H

#include "base/out.h"
#include "capture/capread.h"

/*
 * A heading, and a line for each thread that had a wait or a name, sorted by process
 * and thread: PID, TID, the same as the thread itself sees them ("-" where
 * they are not known), waits, off-CPU time, name. With PID (not 0) of that one
 * alone. 0 or -ENOMEM.
 */
int capthreadtext_put(struct out *o, const struct capread *c, uint64_t pid);

#endif
