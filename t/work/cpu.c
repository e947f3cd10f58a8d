/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu - threads that execute known functions, and print how long by the scheduler's own clock.
 *
 *	cpu SECONDS
 *
 * Two threads, "busy-1" and "busy-2", execute one_part(), three_parts(), which loops three times as
 * long, and in_kernel(), which reads /dev/zero; then they sleep. At its end each prints
 *
 *	NAME TID ONE THREE KERNEL CPU WALL
 *
 * in nanoseconds: CPU time in each of the functions, and of the thread in all; its life.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static volatile unsigned long sink;

static void loop(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i;
}

static void one_part(void)
{
	loop(2000000);
}

static void three_parts(void)
{
	loop(6000000);
}

static void in_kernel(int fd, char *to, size_t len)
{
	for (int i = 0; i < 20; i++)
		if (read(fd, to, len) != (ssize_t)len)
			exit(1);
}

struct self {
	const char *name;
	uint64_t until, one, three, kernel, cpu, wall;
	long tid;
};

static void *busy(void *arg)
{
	const struct timespec pause = { .tv_nsec = 3 * MS };
	const size_t len = 1 << 20;
	struct self *s = arg;
	char *to = malloc(len);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	uint64_t begun = clock_ns(CLOCK_MONOTONIC), a, b;

	prctl(PR_SET_NAME, s->name);
	s->tid = syscall(SYS_gettid);
	if (!to || fd < 0)
		exit(1);
	while (clock_ns(CLOCK_MONOTONIC) < s->until) {
		a = cpu_ns();
		one_part();
		b = cpu_ns();
		s->one += b - a;
		three_parts();
		a = cpu_ns();
		s->three += a - b;
		in_kernel(fd, to, len);
		b = cpu_ns();
		s->kernel += b - a;
		nanosleep(&pause, NULL);
	}
	close(fd);
	free(to);
	s->cpu = cpu_ns();
	s->wall = clock_ns(CLOCK_MONOTONIC) - begun;
	return NULL;
}

int main(int argc, char **argv)
{
	static struct self selves[] = { { .name = "busy-1" }, { .name = "busy-2" } };
	enum { N = sizeof(selves) / sizeof(selves[0]) };
	pthread_t ids[N];

	if (argc != 2)
		return 64;
	for (int i = 0; i < N; i++) {
		selves[i].until = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(atof(argv[1]) * 1e9);
		if (pthread_create(&ids[i], NULL, busy, &selves[i]) != 0)
			return 1;
	}
	for (int i = 0; i < N; i++) {
		pthread_join(ids[i], NULL);
		printf("%s %ld %llu %llu %llu %llu %llu\n", selves[i].name, selves[i].tid,
			(unsigned long long)selves[i].one, (unsigned long long)selves[i].three,
			(unsigned long long)selves[i].kernel, (unsigned long long)selves[i].cpu,
			(unsigned long long)selves[i].wall);
	}
	return 0;
}
