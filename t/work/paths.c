/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * paths N HELD: waits N times, each time with another stack: behind 24 calls, each of which is made at one of
 * two places, as the bits of the number say, the highest in the last call. Then the first and the last AGAIN
 * of them once more. HELD threads wait all the time, numbers from FIRST on; those of odd numbers then wait
 * again with the same stack.
 *
 * Prints a word and reads a line when the HELD wait ("ready"), after a third of the N, after all ("done"),
 * and before the last waits end ("again").
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CALLS 24
#define AGAIN 100
#define FIRST 0xf00000u
#define HELD_MAX 64

static int there[2], back[2];
static sem_t ready, over[HELD_MAX];

static void say_and_wait(const char *word)
{
	char line[16];

	puts(word);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

/* To the other thread and back, which may take no wait; or a sleep (-1); or, for thread HELD, until it is
 * over. */
__attribute__((noinline)) static void wait_once(int held)
{
	char c = 0;

	if (held < 0) {
		usleep(50);
	} else if (held) {
		sem_post(&ready);
		sem_wait(&over[held - 1]);
	} else if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1) {
		abort();
	}
}

__attribute__((noinline)) static int path(uint32_t bits, int calls, int held)
{
	volatile int done = 0; /* what follows a call keeps it one */

	if (!calls)
		wait_once(held);
	else if (bits & 1)
		done = path(bits >> 1, calls - 1, held);
	else
		done = 1 - path(bits >> 1, calls - 1, held);
	return done;
}

static void *answer(void *arg)
{
	char c;

	prctl(PR_SET_NAME, "answer");
	while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
		;
	return arg;
}

static void *hold(void *arg)
{
	const int n = (int)(intptr_t)arg;

	prctl(PR_SET_NAME, "held");
	path(FIRST + (uint32_t)n, CALLS, n);
	if (n & 1)
		path(FIRST + (uint32_t)n, CALLS, n);
	return NULL;
}

int main(int argc, char **argv)
{
	const uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	const int held = argc > 2 ? atoi(argv[2]) : 0;
	pthread_t threads[HELD_MAX], other;

	if (n < 2 * AGAIN || n > FIRST || held < 0 || held > HELD_MAX || pipe(there) != 0 || pipe(back) != 0)
		return 64;
	sem_init(&ready, 0, 0);
	if (pthread_create(&other, NULL, answer, NULL) != 0)
		return 1;
	for (int i = 0; i < held; i++) {
		sem_init(&over[i], 0, 0);
		if (pthread_create(&threads[i], NULL, hold, (void *)(intptr_t)(i + 1)) != 0)
			return 1;
	}
	for (int i = 0; i < held; i++)
		sem_wait(&ready);
	say_and_wait("ready");
	for (uint32_t i = 0; i < n; i++) {
		if (i == n / 3)
			say_and_wait("third");
		path(i, CALLS, i < AGAIN || i >= n - AGAIN ? -1 : 0);
	}
	for (uint32_t i = 0; i < AGAIN; i++) {
		path(i, CALLS, -1);
		path(n - AGAIN + i, CALLS, -1);
	}
	say_and_wait("done");
	for (int i = 0; i < held; i++)
		sem_post(&over[i]);
	for (int i = 0; i < held; i += 2)
		sem_wait(&ready);
	say_and_wait("again");
	for (int i = 0; i < held; i++)
		sem_post(&over[i]);
	for (int i = 0; i < held; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
