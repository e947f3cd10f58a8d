/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runsoon - have this thread run as soon as it wakes up.
 *
 * What new processes map has to be read before they wait: with a short slice
 * the scheduler lets the recorder run when it wakes (Linux 6.12; the niceness
 * works everywhere). Where it is refused, more waits begin too soon.
 */
#ifndef STACKTOOLS_RUNSOON_H
#define STACKTOOLS_RUNSOON_H

void runsoon(void);

#endif
