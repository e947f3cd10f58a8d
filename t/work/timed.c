/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that sleeps, and one that reads from a pipe what another one writes after a pause. Each wait has
 * its own line, of times of CLOCK_MONOTONIC in ns:
 *
 *	NAME BEFORE WOKEN_FROM WOKEN_TO AFTER
 *
 * The thread NAME waited within BEFORE and AFTER, and was woken within WOKEN_FROM and WOKEN_TO: while the
 * writer wrote, or, of a sleep, when it was over.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 400

struct line {
	uint64_t before, from, to, after;
};

static struct line sleeps[ROUNDS], reads[ROUNDS];
static int fds[2];

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *sleeper(void *arg)
{
	prctl(PR_SET_NAME, "sleeper");
	for (int i = 0; i < ROUNDS; i++) {
		struct line *l = &sleeps[i];

		l->before = now();
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		l->to = l->after = now();
		l->from = l->before + 1000000;
	}
	return arg;
}

static void *reader(void *arg)
{
	char c;

	prctl(PR_SET_NAME, "reader");
	for (int i = 0; i < ROUNDS; i++) {
		reads[i].before = now();
		if (read(fds[0], &c, 1) != 1)
			abort();
		reads[i].after = now();
	}
	return arg;
}

static void *writer(void *arg)
{
	prctl(PR_SET_NAME, "writer");
	for (int i = 0; i < ROUNDS; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1500000 }, NULL);
		reads[i].from = now();
		if (write(fds[1], "x", 1) != 1)
			abort();
		reads[i].to = now();
	}
	return arg;
}

int main(void)
{
	void *(*const all[])(void *) = { sleeper, reader, writer };
	pthread_t threads[3];

	if (pipe(fds) != 0)
		abort();
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, all[i], NULL) != 0)
			abort();
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < ROUNDS; i++) {
		const struct line *s = &sleeps[i], *r = &reads[i];

		printf("sleeper %lu %lu %lu %lu\n", s->before, s->from, s->to, s->after);
		printf("reader %lu %lu %lu %lu\n", r->before, r->from, r->to, r->after);
	}
	return 0;
}
