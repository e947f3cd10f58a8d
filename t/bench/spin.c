/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spin N [DEPTH [THREADS]] - a loop of fixed length, DEPTH calls deep (20), that prints how many ns of CPU
 * time it took, in one of THREADS (1) that do the same. It waits for a line on stdin first, after it has
 * printed its PID.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;
static uint64_t n;
static long depth = 20;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts); /* interrupts are part of it */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static __attribute__((noinline)) void deeper(long more)
{
	if (more > 1)
		deeper(more - 1);
	else
		for (uint64_t i = 0; i < n; i++)
			sink += i;
	sink++; /* not a tail call */
}

static void *spin(void *unused)
{
	deeper(depth);
	return unused;
}

int main(int argc, char **argv)
{
	long threads = argc > 3 ? atol(argv[3]) : 1;
	pthread_t thread;
	uint64_t begin;
	char c;

	n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	depth = argc > 2 ? atol(argv[2]) : depth;
	printf("%d\n", getpid());
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		return 1;
	for (long i = 1; i < threads; i++)
		if (pthread_create(&thread, NULL, spin, NULL) != 0)
			return 1;
	begin = now();
	deeper(depth);
	printf("%llu\n", (unsigned long long)(now() - begin));
	return 0;
}
