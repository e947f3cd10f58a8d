/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capmaptext - a process's mappings as /proc/PID/maps shows them.
 */
#ifndef STACKTOOLS_CAPMAPTEXT_H
#define STACKTOOLS_CAPMAPTEXT_H

#include "base/out.h"
#include "capture/capread.h"

/*
 * Those that process PROC (an id) had at the end: the newest at each address,
 * sorted by it. 0 or -ENOMEM.
 */
int capmaptext_put(struct out *o, const struct capread *c, uint32_t proc);

#endif
