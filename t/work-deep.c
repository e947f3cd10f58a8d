/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * work-deep DEPTH [both]: calls itself until the stack has DEPTH frames (main's,
 * libc's two and _start among them) and sleeps there, again and again, until its
 * stdin ends. With "both" the inner half of the stack is left after each sleep
 * and entered again by another function in turn, so that one stack has only its
 * outer half in common with the one before.
 *
 * Frame pointers are kept, and the system call is made in the program itself,
 * so that a walk by frame pointer finds the same frames as any other.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long raw(long n, long a, long b, long c)
{
	long ret;

#if defined(__x86_64__)
	__asm__ volatile("syscall" : "=a"(ret) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#else
	ret = syscall(n, a, b, c);
#endif
	return ret;
}

/* One sleep; false when stdin has ended. */
static int leaf(void)
{
	const struct timespec ts = { .tv_nsec = 50000 };
	char c;

	if (raw(SYS_read, 0, (long)&c, 1) == 0)
		return 0;
	raw(SYS_nanosleep, (long)&ts, 0, 0);
	return 1;
}

__attribute__((noinline)) static int here(int n, int times)
{
	int more = 1;

	if (n > 1)
		return here(n - 1, times) & 1;
	while (more && times-- != 0)
		more = leaf();
	return more;
}

__attribute__((noinline)) static int there(int n, int times)
{
	int more = 1;

	if (n > 1)
		return there(n - 1, times) & 1;
	while (more && times-- != 0)
		more = leaf();
	return more;
}

/* N frames of its own, HALF deeper ones in turn. */
__attribute__((noinline)) static int both(int n, int half)
{
	if (n > 1)
		return both(n - 1, half) & 1;
	while (here(half, 1) && there(half, 1))
		;
	return 0;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 10;
	/* raw, leaf, main, two of libc, _start */
	int n = depth - 6;

	prctl(PR_SET_TIMERSLACK, 1);
	if (n < 2 || fcntl(0, F_SETFL, O_NONBLOCK) != 0)
		return 2;
	if (argc > 2 && strcmp(argv[2], "both") == 0)
		return both(n - n / 2, n / 2);
	return here(n, -1);
}
