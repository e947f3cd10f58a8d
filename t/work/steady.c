/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * steady [N] - threads that wait in known ways, always the same, until stdin
 * ends: N of each kind (default 1), but only one s-work. Their names say how
 * they wait:
 *
 * 	s-futex  in one futex(2) forever	s-sleep  in nanosleeps of 30 ms
 * 	s-poll   in poll(2) forever		s-work   works 5 ms, sleeps 15 ms
 *
 * steady churn - threads that start, sleep up to 20 ms and exit, eight at a
 * time; prints how many there were.
 *
 * Prints "ready" when all are running.
 */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint32_t never;
static volatile int over;
static unsigned long gone;

static void pause_ms(long ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *in_futex(void *arg)
{
	prctl(PR_SET_NAME, "s-futex");
	syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	return arg;
}

static void *in_poll(void *arg)
{
	prctl(PR_SET_NAME, "s-poll");
	poll(NULL, 0, -1);
	return arg;
}

static void *in_sleeps(void *arg)
{
	prctl(PR_SET_NAME, "s-sleep");
	while (!over)
		pause_ms(30);
	return arg;
}

static void *at_work(void *arg)
{
	prctl(PR_SET_NAME, "s-work");
	while (!over) {
		uint64_t until = cpu_ns() + 5000000;

		while (cpu_ns() < until)
			;
		pause_ms(15);
	}
	return arg;
}

static void *short_lived(void *arg)
{
	pause_ms(1 + (long)(uintptr_t)arg % 20);
	return NULL;
}

static void *churn(void *arg)
{
	pthread_t t;

	for (uintptr_t i = (uintptr_t)arg; !over; i++) {
		if (pthread_create(&t, NULL, short_lived, (void *)i) != 0)
			exit(1);
		pthread_join(t, NULL);
		__atomic_add_fetch(&gone, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void start(void *(*fn)(void *), uintptr_t arg)
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	if (pthread_create(&t, &a, fn, (void *)arg) != 0)
		exit(1);
	pthread_detach(t);
}

int main(int argc, char **argv)
{
	int churns = argc > 1 && strcmp(argv[1], "churn") == 0, n = argc > 1 && !churns ? atoi(argv[1]) : 1;
	char c;

	for (int i = 0; i < n; i++) {
		if (churns)
			continue;
		start(in_futex, 0);
		start(in_poll, 0);
		start(in_sleeps, 0);
	}
	if (!churns)
		start(at_work, 0);
	for (uintptr_t i = 0; churns && i < 8; i++)
		start(churn, i * 5);
	pause_ms(50);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	over = 1;
	if (churns)
		printf("%lu\n", __atomic_load_n(&gone, __ATOMIC_RELAXED));
	return 0;
}
