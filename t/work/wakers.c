/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that wait for each other, each in a function of its own and for one other thread alone, and
 * a process. Prints lines "FUNCTION WAKER COUNT": in FUNCTION, threads wait at most COUNT times, and the
 * thread, or the interrupt, named WAKER wakes them; "-" for COUNT: it is not known.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 300
#define HITS 20000 /* between two CPUs, as fast as they can */
#define PAUSES 20

static void named(const char *name)
{
	prctl(PR_SET_NAME, name);
}

static void pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

void sleep_wait(void);
void sleep_wait(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
	__asm__ volatile("" ::: "memory");
}

/* --- a ring of three threads: a chain of wakers --- */

static int ring[3];

static void take(int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) != sizeof(n))
		abort();
	__asm__ volatile("" ::: "memory");
}

static void give(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		abort();
	__asm__ volatile("" ::: "memory");
}

#define RING(name, own, next)                                                                                \
	void name##_wait(void);                                                                              \
	void name##_wait(void)                                                                               \
	{                                                                                                    \
		take(ring[own]);                                                                             \
		__asm__ volatile("" ::: "memory");                                                           \
	}                                                                                                    \
	static void *run_##name(void *unused)                                                                \
	{                                                                                                    \
		named("ring-" #name);                                                                        \
		for (int i = 0; i < ROUNDS; i++) {                                                           \
			name##_wait();                                                                       \
			give(ring[next]);                                                                    \
		}                                                                                            \
		return unused;                                                                               \
	}

RING(a, 0, 1)
RING(b, 1, 2)
RING(c, 2, 0)

/* --- two threads that wake each other from different CPUs, so that one is often still leaving its CPU --- */

static uint32_t ball;

static void hit(uint32_t own)
{
	__atomic_store_n(&ball, !own, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &ball, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void await_ball(uint32_t own)
{
	while (__atomic_load_n(&ball, __ATOMIC_SEQ_CST) != own)
		syscall(SYS_futex, &ball, FUTEX_WAIT_PRIVATE, !own, NULL, NULL, 0);
	__asm__ volatile("" ::: "memory");
}

void ping_wait(void);
void ping_wait(void)
{
	await_ball(0);
	__asm__ volatile("" ::: "memory");
}

void pong_wait(void);
void pong_wait(void)
{
	await_ball(1);
	__asm__ volatile("" ::: "memory");
}

static void *run_ping(void *unused)
{
	named("ping");
	pin(0);
	for (int i = 0; i < HITS; i++) {
		ping_wait();
		hit(0);
	}
	return unused;
}

static void *run_pong(void *unused)
{
	named("pong");
	pin((int)sysconf(_SC_NPROCESSORS_ONLN) > 1);
	for (int i = 0; i < HITS; i++) {
		pong_wait();
		hit(1);
	}
	return unused;
}

/* --- signals, processes --- */

static pid_t paused;
static int over;

void pause_wait(void);
void pause_wait(void)
{
	pause();
	__asm__ volatile("" ::: "memory");
}

static void nothing(int sig)
{
	(void)sig;
}

static void *run_paused(void *unused)
{
	named("paused");
	__atomic_store_n(&paused, (pid_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST))
		pause_wait();
	return unused;
}

static void *run_killer(void *unused)
{
	named("killer");
	while (!__atomic_load_n(&paused, __ATOMIC_SEQ_CST))
		sleep_wait();
	for (int i = 0; i < PAUSES; i++) {
		sleep_wait();
		__atomic_store_n(&over, i + 1 == PAUSES, __ATOMIC_SEQ_CST);
		syscall(SYS_tgkill, getpid(), paused, SIGUSR1);
	}
	return unused;
}

void child_wait(pid_t pid);
void child_wait(pid_t pid)
{
	waitpid(pid, NULL, 0);
	__asm__ volatile("" ::: "memory");
}

void pipe_wait(int fd);
void pipe_wait(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		abort();
	__asm__ volatile("" ::: "memory");
}

static void *run_parent(void *unused)
{
	int fds[2];
	pid_t pid;

	named("parent");
	if (pipe(fds) != 0)
		abort();
	pid = fork();
	if (pid == 0) {
		named("child");
		for (int i = 0; i < PAUSES; i++) {
			sleep_wait();
			if (write(fds[1], "x", 1) != 1)
				abort();
		}
		/* not before its parent waits for it */
		for (int i = 0; i < PAUSES; i++)
			sleep_wait();
		_exit(0);
	}
	for (int i = 0; i < PAUSES; i++)
		pipe_wait(fds[0]);
	child_wait(pid);
	return unused;
}

int main(void)
{
	void *(*const all[])(
		void *) = { run_a, run_b, run_c, run_ping, run_pong, run_paused, run_killer, run_parent };
	pthread_t threads[sizeof(all) / sizeof(all[0])];

	signal(SIGUSR1, nothing);
	for (int i = 0; i < 3; i++)
		ring[i] = eventfd(0, 0);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (pthread_create(&threads[i], NULL, all[i], NULL) != 0)
			abort();
	/* whoever began the ring would be another waker: let its threads wait first */
	for (int i = 0; i < 10; i++)
		sleep_wait();
	give(ring[0]);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		pthread_join(threads[i], NULL);
	printf("a_wait ring-c %d\nb_wait ring-a %d\nc_wait ring-b %d\n", ROUNDS, ROUNDS, ROUNDS);
	printf("ping_wait pong -\npong_wait ping -\npause_wait killer %d\n", PAUSES);
	printf("pipe_wait child %d\nchild_wait child 1\nsleep_wait [timer] -\n", PAUSES);
	return 0;
}
