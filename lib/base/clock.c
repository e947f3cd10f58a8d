/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* Offsets of the time namespace in nanoseconds, constant for the lifetime of the process. */
static struct {
	int64_t monotonic, boottime;
} offsets;

/* Runs at program start: a process that has sandboxed itself can no longer read the offsets. */
__attribute__((constructor)) static void read_offsets(void)
{
	FILE *f = fopen("/proc/self/timens_offsets", "re");
	long long seconds, ns;
	char clock[16];

	while (f && fscanf(f, "%15s %lld %lld", clock, &seconds, &ns) == 3) {
		if (strcmp(clock, "monotonic") == 0)
			offsets.monotonic = seconds * 1000000000 + ns;
		else if (strcmp(clock, "boottime") == 0)
			offsets.boottime = seconds * 1000000000 + ns;
	}
	if (f)
		fclose(f);
}

uint64_t now_on(clockid_t clock)
{
	int64_t offset = clock == CLOCK_MONOTONIC  ? offsets.monotonic
			 : clock == CLOCK_BOOTTIME ? offsets.boottime
						   : 0;
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec - offset);
}

uint64_t now_ns(void)
{
	return now_on(CLOCK_MONOTONIC);
}
