/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * idle N - a server with nothing to do: N threads wait in futex(2), the main
 * thread reads stdin. Prints its PID when all of them are about to wait. Ends
 * when stdin does.
 */
#include "direct.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static uint32_t never, ready;

__attribute__((noinline)) static long wait_for_ever(void)
{
	/* a leaf that uses no stack gets no frame unless it takes its frame address */
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
	return direct_syscall(SYS_futex, (long)&never, FUTEX_WAIT_PRIVATE, 0, 0);
}

static void *idle(void *arg)
{
	prctl(PR_SET_NAME, "i-wait");
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	while (wait_for_ever() <= 0)
		;
	return arg;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 10;
	pthread_attr_t attr;
	pthread_t t;
	char c;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (long i = 0; i < n; i++)
		if (pthread_create(&t, &attr, idle, NULL) != 0)
			return 1;
	while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < (uint32_t)n)
		usleep(1000);
	usleep(100000);
	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
