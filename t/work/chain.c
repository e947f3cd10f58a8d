/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chain - threads that block at the end of call chains of known names.
 *
 * Functions of this program make system calls by inline assembly, so that a
 * walk by frame pointer passes no code without frame pointers. Prints "PID",
 * then for each thread "TID NAME FUNCTION;...", leaf first, with the frames
 * that belong to this program. Ends when stdin does.
 *
 *   chain [DEPTH]   DEPTH: how often the thread "chain-deep" recurses
 */
#include "direct.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP() __asm__ volatile("" ::: "memory")

static int silent[2];
static long depth;
static uint32_t ready;

NOINLINE long block_in_read(int fd)
{
	char c;

	return direct_syscall(SYS_read, fd, (long)&c, 1, 0);
}

NOINLINE long block_in_nanosleep(void)
{
	struct timespec ts = { .tv_sec = 1000 };

	return direct_syscall(SYS_nanosleep, (long)&ts, 0, 0, 0);
}

NOINLINE long block_in_futex(void)
{
	static uint32_t word;

	/* a leaf that uses no stack gets no frame unless it takes its frame address */
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
	return direct_syscall(SYS_futex, (long)&word, 128, 0, 0);
}

#define CALLS(name, expr)                                                                                    \
	NOINLINE long name(void)                                                                             \
	{                                                                                                    \
		long r = (expr);                                                                             \
		KEEP();                                                                                      \
		return r + 1;                                                                                \
	}

CALLS(read_gamma, block_in_read(silent[0]))
CALLS(read_beta, read_gamma())
CALLS(read_alpha, read_beta())
CALLS(sleep_beta, block_in_nanosleep())
CALLS(sleep_alpha, sleep_beta())
CALLS(futex_alpha, block_in_futex())

NOINLINE long recurse(long n)
{
	long r = n > 1 ? recurse(n - 1) : block_in_read(silent[0]);

	KEEP();
	return r + n;
}

static void hello(const char *name, const char *chain)
{
	prctl(PR_SET_NAME, name);
	printf("%ld %s %s\n", syscall(SYS_gettid), name, chain);
	fflush(stdout);
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
}

NOINLINE void *thread_read(void *arg)
{
	hello("chain-read", "block_in_read;read_gamma;read_beta;read_alpha;thread_read");
	read_alpha();
	KEEP();
	return arg;
}

NOINLINE void *thread_sleep(void *arg)
{
	hello("chain-sleep", "block_in_nanosleep;sleep_beta;sleep_alpha;thread_sleep");
	sleep_alpha();
	KEEP();
	return arg;
}

NOINLINE void *thread_futex(void *arg)
{
	hello("chain-futex", "block_in_futex;futex_alpha;thread_futex");
	futex_alpha();
	KEEP();
	return arg;
}

NOINLINE void *thread_deep(void *arg)
{
	static char chain[1 << 16];
	size_t n = (size_t)snprintf(chain, sizeof(chain), "block_in_read");

	for (long i = 0; i < depth && n < sizeof(chain); i++)
		n += (size_t)snprintf(chain + n, sizeof(chain) - n, ";recurse");
	if (n < sizeof(chain))
		snprintf(chain + n, sizeof(chain) - n, ";thread_deep");
	hello("chain-deep", chain);
	recurse(depth);
	KEEP();
	return arg;
}

int main(int argc, char **argv)
{
	void *(*const threads[])(void *) = { thread_read, thread_sleep, thread_futex, thread_deep };
	pthread_t t;
	char c;

	depth = argc > 1 ? atol(argv[1]) : 20;
	if (pipe(silent))
		return 1;
	printf("%d\n", (int)getpid());
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
		pthread_create(&t, NULL, threads[i], NULL);
	while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < sizeof(threads) / sizeof(threads[0]))
		usleep(1000);
	usleep(100000);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
