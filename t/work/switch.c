/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * switch - threads that do nothing but switch, to measure the cost of a
 * recorder.
 *
 *   switch futex N          two threads on one CPU hand a futex over, N times
 *   switch pipe N [DEPTH]   the same with two pipes, DEPTH frames deep (20)
 *   switch vsock N [DEPTH]  the same with a pair of sockets of modules: AF_VSOCK, over loopback
 *   switch sleep N [THREADS [MS]]  THREADS (50) sleep MS (1) each time, N times in all
 *   switch hold             one thread that waits for stdin to end
 *
 * Prints its PID, waits for a line on stdin, runs, and prints the number of
 * hand-overs per second, then per second of its CPU time.
 */
#include <linux/futex.h>
#include <linux/vm_sockets.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long rounds, depth = 20, sleep_ms = 1;
static uint32_t turn;
static int there[2], back[2];

static double now_on(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void pin(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *futex_side(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;

	pin();
	for (long i = 0; i < rounds; i++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != me)
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !me, NULL, NULL, 0);
		__atomic_store_n(&turn, !me, __ATOMIC_RELEASE);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

static void pipe_rounds(int in, int out)
{
	char c = 0;

	for (long i = 0; i < rounds; i++)
		if (read(in, &c, 1) != 1 || write(out, &c, 1) != 1)
			exit(1);
}

__attribute__((noinline)) static long deeper(long n, int in, int out)
{
	if (n <= 1)
		pipe_rounds(in, out);
	else
		n += deeper(n - 1, in, out);
	__asm__ volatile("" ::: "memory");
	return n;
}

static void *pipe_side(void *arg)
{
	pin();
	if (arg)
		deeper(depth, there[0], back[1]);
	else
		deeper(depth, back[0], there[1]);
	return NULL;
}

/* Both ends of a connection, each of them for both ways. */
static int open_vsock(void)
{
	struct sockaddr_vm to = {
		.svm_family = AF_VSOCK, .svm_port = VMADDR_PORT_ANY, .svm_cid = VMADDR_CID_LOCAL
	};
	socklen_t len = sizeof(to);
	int listener = socket(AF_VSOCK, SOCK_STREAM, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)&to, sizeof(to)) != 0 ||
		listen(listener, 1) != 0 || getsockname(listener, (struct sockaddr *)&to, &len) != 0)
		return -1;
	there[0] = back[1] = socket(AF_VSOCK, SOCK_STREAM, 0);
	if (there[0] < 0 || connect(there[0], (struct sockaddr *)&to, sizeof(to)) != 0)
		return -1;
	back[0] = there[1] = accept(listener, NULL, NULL);
	return back[0] < 0 ? -1 : 0;
}

static void *sleep_side(void *arg)
{
	struct timespec ts = { .tv_sec = sleep_ms / 1000, .tv_nsec = sleep_ms % 1000 * 1000000 };

	(void)arg;
	for (long i = 0; i < rounds; i++)
		nanosleep(&ts, NULL);
	return NULL;
}

static void run(void *(*side)(void *), long threads)
{
	pthread_t t[1024];

	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, side, (void *)(uintptr_t)i);
	for (long i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0, extra = argc > 3 ? atol(argv[3]) : 0;
	double t0, cpu0;

	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (getchar() != '\n' && !feof(stdin))
		;
	if (strcmp(mode, "hold") == 0)
		return 0;
	rounds = n;
	t0 = now_on(CLOCK_MONOTONIC);
	cpu0 = now_on(CLOCK_PROCESS_CPUTIME_ID);
	if (strcmp(mode, "futex") == 0) {
		run(futex_side, 2);
	} else if (strcmp(mode, "pipe") == 0) {
		depth = extra ? extra : depth;
		if (pipe(there) || pipe(back) || write(there[1], "", 1) != 1)
			return 1;
		run(pipe_side, 2);
	} else if (strcmp(mode, "vsock") == 0) {
		depth = extra ? extra : depth;
		if (open_vsock() != 0 || write(there[1], "", 1) != 1) {
			perror("switch: vsock");
			return 1;
		}
		run(pipe_side, 2);
	} else if (strcmp(mode, "sleep") == 0) {
		long threads = extra > 0 && extra < 1024 ? extra : 50;

		sleep_ms = argc > 4 && atol(argv[4]) > 0 ? atol(argv[4]) : sleep_ms;
		rounds = n / threads;
		run(sleep_side, threads);
	} else {
		fprintf(stderr, "switch: futex, pipe, vsock, sleep or hold\n");
		return 64;
	}
	printf("%.0f\n", (double)n / (now_on(CLOCK_MONOTONIC) - t0));
	printf("%.0f\n", (double)n / (now_on(CLOCK_PROCESS_CPUTIME_ID) - cpu0));
	fflush(stdout);
	/* a recorder of this process ends with it */
	while (getchar() != EOF)
		;
	return 0;
}
