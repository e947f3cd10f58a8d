/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two threads that never wait and share one CPU: each is interrupted wherever
 * it is, in the vdso most of the time.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "work.h"

static volatile long total;

FN long fn_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_nsec;
}

FN void fn_clocks(void)
{
	for (;;)
		total += fn_clock();
}

FN void *fn_thread(void *arg)
{
	fn_clocks();
	KEEP();
	return arg;
}

int main(void)
{
	cpu_set_t one;
	pthread_t t;

	CPU_ZERO(&one);
	sched_getaffinity(0, sizeof(one), &one);
	for (int i = 0, seen = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &one) && seen++)
			CPU_CLR(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (pthread_create(&t, NULL, fn_thread, NULL))
		return 1;
	fn_clocks();
	KEEP();
	return 0;
}
