/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/interrupt.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

#define SLICE_MS 100

bool interrupt_pending(void)
{
	sigset_t set;

	return sigpending(&set) == 0 &&
	       (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) || sigismember(&set, SIGHUP));
}

int interrupt_wait(int fd, int ms)
{
	const uint64_t end_ns = now_ns() + (uint64_t)MAX(ms, 0) * 1000000;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (;;) {
		uint64_t now = now_ns();
		int left = ms < 0 ? SLICE_MS : (int)(end_ns > now ? (end_ns - now + 999999) / 1000000 : 0);

		if (poll(&p, 1, MIN(left, SLICE_MS)) > 0)
			return 1;
		if (interrupt_pending())
			return -EINTR;
		if (ms >= 0 && now_ns() >= end_ns)
			return 0;
	}
}
