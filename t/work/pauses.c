/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pauses SECONDS - threads that wait once, for that long, for nothing but the end of that time: "p-poll" and
 * "p-select" without descriptors, "p-sem" for a semaphore, "p-signal" for a signal; and "p-again", with poll,
 * time and again. Prints its PID.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static int seconds;

static void *in_poll(void *arg)
{
	prctl(PR_SET_NAME, "p-poll");
	poll(NULL, 0, seconds * 1000);
	return arg;
}

static void *in_select(void *arg)
{
	prctl(PR_SET_NAME, "p-select");
	select(0, NULL, NULL, NULL, &(struct timeval){ .tv_sec = seconds });
	return arg;
}

static void *again(void *arg)
{
	prctl(PR_SET_NAME, "p-again");
	for (int i = 0; i < seconds * 20; i++)
		poll(NULL, 0, 50);
	return arg;
}

static void *in_semaphore(void *arg)
{
	struct timespec until;
	sem_t never;

	prctl(PR_SET_NAME, "p-sem");
	sem_init(&never, 0, 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	sem_timedwait(&never, &until);
	return arg;
}

static void *in_signal(void *arg)
{
	sigset_t set;

	prctl(PR_SET_NAME, "p-signal");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigtimedwait(&set, NULL, &(struct timespec){ .tv_sec = seconds });
	return arg;
}

int main(int argc, char **argv)
{
	static void *(*const threads[])(void *) = { in_poll, in_select, again, in_semaphore, in_signal };
	enum { N = sizeof(threads) / sizeof(threads[0]) };
	pthread_t ids[N];

	if (argc != 2)
		return 64;
	seconds = atoi(argv[1]);
	for (int i = 0; i < N; i++)
		if (pthread_create(&ids[i], NULL, threads[i], NULL) != 0)
			return 1;
	printf("%d\n", getpid());
	fflush(stdout);
	for (int i = 0; i < N; i++)
		pthread_join(ids[i], NULL);
	return 0;
}
