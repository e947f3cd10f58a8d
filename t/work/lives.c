/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lives - threads that run, wait for a CPU and sleep, and say for how long by the scheduler's account.
 *
 *	lives share		until stdin ends
 *	lives images		two images of a process, one after the other
 *
 * share: "spin-1" and "spin-2" share a CPU with "nap", which sleeps, and with one "born" after the other,
 * which run for 50 ms of CPU time, sleep and run again. Each of these prints at its end
 *
 *	born TID RAN QUEUED LIFE STOLEN
 *
 * in nanoseconds; the first two are those of its schedstat. The last one is what neither they nor its sleep
 * explain: interrupts, and a hypervisor that took the CPU.
 *
 * images: sleeps and runs for 200 ms of CPU time, then the same with 400 ms in another image, each of which
 * prints
 *
 *	image PID RAN
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull

static volatile int stop;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Also makes the kernel count up to now. */
static uint64_t ran_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t queued_ns(void)
{
	char line[128] = "";
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	unsigned long long ran, queued;

	if (fd < 0 || read(fd, line, sizeof(line) - 1) <= 0 || sscanf(line, "%llu %llu", &ran, &queued) != 2)
		exit(1);
	close(fd);
	return queued;
}

static void run(uint64_t ns)
{
	uint64_t until = ran_ns() + ns;

	while (ran_ns() < until)
		;
}

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static void *spin(void *name)
{
	prctl(PR_SET_NAME, name);
	while (!stop)
		;
	return NULL;
}

static void *nap(void *name)
{
	prctl(PR_SET_NAME, name);
	while (!stop)
		pause_ns(20 * MS);
	return NULL;
}

static void *born(void *name)
{
	uint64_t begun = clock_ns(CLOCK_MONOTONIC), slept, ran, queued, life;

	prctl(PR_SET_NAME, name);
	run(50 * MS);
	slept = queued_ns() - clock_ns(CLOCK_MONOTONIC);
	pause_ns(50 * MS);
	slept += clock_ns(CLOCK_MONOTONIC) - queued_ns();
	run(50 * MS);
	ran = ran_ns();
	queued = queued_ns();
	life = clock_ns(CLOCK_MONOTONIC) - begun;
	printf("born %ld %llu %llu %llu %lld\n", (long)syscall(SYS_gettid), (unsigned long long)ran,
		(unsigned long long)queued, (unsigned long long)life,
		(long long)(life - ran - queued - slept));
	return NULL;
}

static void *wait_for_end(void *arg)
{
	char c;

	while (read(0, &c, 1) > 0)
		;
	stop = 1;
	return arg;
}

static int share(void)
{
	pthread_t ids[4], other;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0 ||
		pthread_create(&ids[0], NULL, spin, "spin-1") != 0 ||
		pthread_create(&ids[1], NULL, spin, "spin-2") != 0 ||
		pthread_create(&ids[2], NULL, nap, "nap") != 0 ||
		pthread_create(&ids[3], NULL, wait_for_end, NULL) != 0)
		return 1;
	while (!stop) {
		if (pthread_create(&other, NULL, born, "born") != 0)
			return 1;
		pthread_join(other, NULL);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

static int image(char **argv, uint64_t ns)
{
	uint64_t before = ran_ns();

	pause_ns(50 * MS);
	run(ns);
	printf("image %d %llu\n", getpid(), (unsigned long long)(ran_ns() - before));
	fflush(stdout);
	if (strcmp(argv[1], "images") == 0)
		execl("/proc/self/exe", argv[0], "last", (char *)NULL);
	return strcmp(argv[1], "last") != 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "share") == 0)
		return share();
	if (argc == 2 && strcmp(argv[1], "images") == 0)
		return image(argv, 200 * MS);
	return argc == 2 && strcmp(argv[1], "last") == 0 ? image(argv, 400 * MS) : 64;
}
