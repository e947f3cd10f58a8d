/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spin N [DEPTH] - a loop of fixed length, DEPTH calls deep (20), that prints how many ns of CPU time it
 * took. It waits for a line on stdin first, after it has printed its PID.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts); /* interrupts are part of it */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static __attribute__((noinline)) void deeper(long depth, uint64_t n)
{
	if (depth > 1)
		deeper(depth - 1, n);
	else
		for (uint64_t i = 0; i < n; i++)
			sink += i;
	sink++; /* not a tail call */
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000, begin;
	char c;

	printf("%d\n", getpid());
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		return 1;
	begin = now();
	deeper(argc > 2 ? atol(argv[2]) : 20, n);
	printf("%llu\n", (unsigned long long)(now() - begin));
	return 0;
}
