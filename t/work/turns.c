/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that waits very often, in two functions that call the wait from frames of the same size, so that
 * the program counter and the stack pointer there are the same: three times in four in one of them, in the
 * other otherwise. With "slow" it waits seldom. Prints how often it has left the CPU there to wait, by the
 * kernel's account: a sleep that is over before the thread is asleep is not a wait.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static long rest_ns = 60000;

void rest(void);
void rest(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = rest_ns }, NULL);
	__asm__ volatile("" ::: "memory");
}

void often(void);
void often(void)
{
	rest();
	__asm__ volatile("" ::: "memory");
}

void seldom(void);
void seldom(void)
{
	rest();
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char *argv[])
{
	struct rusage before, after;
	const int rounds = argc > 1 && strcmp(argv[1], "slow") == 0 ? 40 : 8000;

	if (rounds == 40)
		rest_ns = 10000000;
	getrusage(RUSAGE_SELF, &before);
	for (int i = 0; i < rounds; i++) {
		if (i % 4 == 3)
			seldom();
		else
			often();
	}
	getrusage(RUSAGE_SELF, &after);
	printf("%ld\n", after.ru_nvcsw - before.ru_nvcsw);
	return 0;
}
