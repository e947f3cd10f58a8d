/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deep DEPTH [both] - calls itself until the stack has DEPTH frames (including
 * main's, two of libc and _start) and sleeps there repeatedly until stdin ends.
 * With "both", after each sleep it returns from the inner half of the stack and
 * enters it again through other functions in turn, so that consecutive stacks
 * have only their outer half in common.
 *
 * As in a real program, no two of the innermost 64 or outermost 64 frames of a
 * stack belong to the same function, and frames have many sizes, 88 bytes on
 * average. Frame pointers are kept, and the program makes the system call
 * itself, so that a walk by frame pointer finds the same frames as any other
 * walk.
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

/* One sleep; false if stdin has ended. */
static int leaf(void)
{
	const struct timespec ts = { .tv_nsec = 50000 };
	char c;

	if (raw(SYS_read, 0, (long)&c, 1) == 0)
		return 0;
	raw(SYS_nanosleep, (long)&ts, 0, 0);
	return 1;
}

struct way {
	int n; /* frames still to be entered */
	int times; /* sleeps at their end, -1 = forever */
	int half; /* then: frames of the inner half, which is entered repeatedly; 0 = sleep instead */
};

typedef int frame_fn(struct way *w);

static frame_fn *const here[64], *const there[64], *const outer[64];

static int sleeps(struct way *w)
{
	int more = 1;

	while (more && w->times-- != 0)
		more = leaf();
	return more;
}

/* The inner half, through two sets of functions in turn. */
static int both(const struct way *w)
{
	struct way a, b;

	do {
		a = b = (struct way){ .n = w->half, .times = 1 };
	} while (here[w->half & 63](&a) && there[w->half & 63](&b));
	return 0;
}

/* Frame I of SET: SIZE bytes of local data, then the next frame. */
#define FRAME(set, i, size)                                                                                  \
	static int set##_##i(struct way *w)                                                                  \
	{                                                                                                    \
		char own[size];                                                                              \
                                                                                                             \
		__asm__ volatile("" : : "r"(own) : "memory");                                                \
		if (--w->n > 0)                                                                              \
			return set[w->n & 63](w) & 1;                                                        \
		return (w->half ? both(w) : sleeps(w)) & 1;                                                  \
	}
#define NAME(set, i, size) set##_##i,
#define EIGHT(x, set, i)                                                                                     \
	x(set, i##0, 16) x(set, i##1, 64) x(set, i##2, 32) x(set, i##3, 160) x(set, i##4, 48)                \
		x(set, i##5, 96) x(set, i##6, 24) x(set, i##7, 120)
#define FOUR(x, set, a, b, c, d) EIGHT(x, set, a) EIGHT(x, set, b) EIGHT(x, set, c) EIGHT(x, set, d)
#define ALL(x, set) FOUR(x, set, 0, 1, 2, 3) FOUR(x, set, 4, 5, 6, 7)

ALL(FRAME, here)
ALL(FRAME, there)
ALL(FRAME, outer)
static frame_fn *const here[64] = { ALL(NAME, here) };
static frame_fn *const there[64] = { ALL(NAME, there) };
static frame_fn *const outer[64] = { ALL(NAME, outer) };

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 10;
	/* raw, leaf, sleeps, main, two of libc, _start */
	struct way w = { .n = depth - 7, .times = -1 };

	prctl(PR_SET_TIMERSLACK, 1);
	if (w.n < 3 || fcntl(0, F_SETFL, O_NONBLOCK) != 0)
		return 2;
	if (argc > 2 && strcmp(argv[2], "both") == 0) {
		/* both() itself adds one frame */
		w.half = (w.n - 1) / 2;
		w.n -= 1 + w.half;
		return outer[w.n & 63](&w);
	}
	return here[w.n & 63](&w);
}
