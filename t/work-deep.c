/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * work-deep DEPTH: calls itself until the stack has DEPTH frames (main's and
 * libc's two among them) and sleeps there, again and again, until its stdin
 * ends. Frame pointers are kept, and the system call is made in the program
 * itself, so that a walk by frame pointer finds the same frames as any other.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

static void leaf(void)
{
	struct timespec ts = { .tv_nsec = 50000 };
	char c;

	while (raw(SYS_read, 0, (long)&c, 1) != 0)
		raw(SYS_nanosleep, (long)&ts, 0, 0);
}

__attribute__((noinline)) static int down(int n)
{
	if (n > 0)
		return down(n - 1) + 1;
	leaf();
	return 0;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 10;

	prctl(PR_SET_TIMERSLACK, 1);
	if (fcntl(0, F_SETFL, O_NONBLOCK) != 0)
		return 2;
	/* leaf and the innermost down, main, two of libc, _start */
	return down(depth - 6) < 0;
}
