/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that waits very often, in two functions that call the wait from frames of the same size, so that
 * the program counter and the stack pointer there are the same: three times in four in one of them, in the
 * other otherwise. With "slow" it waits seldom. Prints lines "FUNCTION COUNT".
 */
#include <stdio.h>
#include <string.h>
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
	const int rounds = argc > 1 && strcmp(argv[1], "slow") == 0 ? 40 : 8000;

	if (rounds == 40)
		rest_ns = 10000000;
	for (int i = 0; i < rounds; i++) {
		if (i % 4 == 3)
			seldom();
		else
			often();
	}
	printf("often %d\nseldom %d\n", rounds / 4 * 3, rounds / 4);
	return 0;
}
