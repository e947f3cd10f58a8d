/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * brief [SECONDS] - waits once, some calls deep, as soon as it has begun: for
 * 50 microseconds, then it is over, or for so long that a debugger can look.
 */
#include <stdlib.h>
#include <time.h>

static volatile int sink;

__attribute__((noipa)) void brief_wait(const struct timespec *ts)
{
	nanosleep(ts, NULL);
	sink++;
}

__attribute__((noipa)) void brief_calls(const struct timespec *ts, int n)
{
	if (n)
		brief_calls(ts, n - 1);
	else
		brief_wait(ts);
	sink++;
}

int main(int argc, char **argv)
{
	struct timespec ts = { argc > 1 ? atoi(argv[1]) : 0, 50000 };

	brief_calls(&ts, 6);
	return 0;
}
