/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that block in signal handlers: one was interrupted in a leaf function
 * below qsort(3), another has called a null pointer. Ends with its parent's signal.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define NO_TAIL_CALL() __asm__ volatile("")

static volatile int counter;
static void (*volatile nowhere)(void);

NOINLINE void nap(void)
{
	struct timespec t = { .tv_sec = 1000 };

	nanosleep(&t, NULL);
	NO_TAIL_CALL();
}

NOINLINE void handler(int sig)
{
	(void)sig;
	nap();
	NO_TAIL_CALL();
}

NOINLINE void leaf(volatile int *p)
{
	for (;;)
		(*p)++;
}

NOINLINE void work(void)
{
	leaf(&counter);
	NO_TAIL_CALL();
}

NOINLINE int by_qsort(const void *a, const void *b)
{
	work();
	return a < b;
}

NOINLINE void *busy(void *arg)
{
	int v[2] = { 1, 2 };

	qsort(v, 2, sizeof(v[0]), by_qsort);
	return arg;
}

NOINLINE void null_caller(void)
{
	nowhere();
	NO_TAIL_CALL();
}

NOINLINE void *caller(void *arg)
{
	null_caller();
	return arg;
}

int main(void)
{
	pthread_t interrupted, null;

	signal(SIGUSR1, handler);
	signal(SIGSEGV, handler);
	if (pthread_create(&interrupted, NULL, busy, NULL) != 0 ||
		pthread_create(&null, NULL, caller, NULL) != 0)
		return 1;
	while (!counter)
		usleep(1000);
	pthread_kill(interrupted, SIGUSR1);
	printf("%d\n", (int)getpid());
	fflush(stdout);
	pause();
	return 0;
}
