/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that waits very often, in two functions that call the wait from frames of the same size, so that
 * the program counter and the stack pointer there are the same: three times in four in one of them, in the
 * other otherwise. With "slow" it waits seldom; with "varied" these functions have frames of varying size.
 * Prints how often it has left the CPU there to wait, by the kernel's account: a sleep that is over before
 * the thread is asleep is not a wait. With "each" or "varied", also how often it did in each of the
 * functions.
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

void often(int bytes);
void often(int bytes)
{
	char room[bytes];

	__asm__ volatile("" ::"r"(room) : "memory");
	rest();
	__asm__ volatile("" ::"r"(room) : "memory");
}

void seldom(int bytes);
void seldom(int bytes)
{
	char room[bytes];

	__asm__ volatile("" ::"r"(room) : "memory");
	rest();
	__asm__ volatile("" ::"r"(room) : "memory");
}

static long switches(void)
{
	struct rusage now;

	getrusage(RUSAGE_SELF, &now);
	return now.ru_nvcsw;
}

int main(int argc, char *argv[])
{
	const char *how = argc > 1 ? argv[1] : "";
	const int varied = strcmp(how, "varied") == 0, slow = strcmp(how, "slow") == 0;
	const int rounds = slow ? 40 : 8000;
	const long before = switches();
	long in[2] = { 0, 0 };

	if (slow)
		rest_ns = 10000000;
	for (int i = 0; i < rounds; i++) {
		const int bytes = 16 + (varied ? i % 5 * 48 : 0);
		const long came = switches();

		if (i % 4 == 3)
			seldom(bytes);
		else
			often(bytes);
		in[i % 4 == 3] += switches() - came;
	}
	printf("%ld\n", switches() - before);
	if (varied || strcmp(how, "each") == 0)
		printf("often %ld\nseldom %ld\n", in[0], in[1]);
	return 0;
}
