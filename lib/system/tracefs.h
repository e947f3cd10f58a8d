/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tracefs - numbers of tracepoints, from tracefs wherever it is. Floor 2.
 *
 * Where nobody has mounted it (a minimal system, a container), it is mounted
 * detached: seen by this process alone, and gone when the function returns.
 */
#ifndef STACKTOOLS_TRACEFS_H
#define STACKTOOLS_TRACEFS_H

#include "err.h"

/*
 * The id of EVENT ("raw_syscalls/sys_enter") for PERF_TYPE_TRACEPOINT.
 * Positive, or -errno with the story: -ENOENT for a tracepoint this kernel
 * does not have, -EPERM where tracefs is neither mounted nor can be.
 */
int tracefs_event_id(const char *event, struct err *e);

#endif
