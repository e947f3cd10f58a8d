/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interrupt - waiting for another process, unless the user wants an end.
 *
 * A recorder blocks SIGINT, SIGTERM and SIGHUP, and reads them from a signalfd(2)
 * when it is at the right place. Whatever waits for another process, which may be
 * stopped or stuck, looks for them itself: they stay pending. Where they are not
 * blocked, they end the process or are ignored, and this has no effect.
 */
#ifndef STACKTOOLS_SYSTEM_INTERRUPT_H
#define STACKTOOLS_SYSTEM_INTERRUPT_H

#include "base/base.h"

/* Whether one of these signals is pending. */
bool interrupt_pending(void);

/*
 * Wait up to MS (-1 = without limit) until FD has input or an end: 1; 0 = not;
 * -EINTR: a signal is pending, which is noticed within a tenth of a second.
 */
int interrupt_wait(int fd, int ms);

#endif
