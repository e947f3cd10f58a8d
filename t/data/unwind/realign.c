/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames that realign the stack: the CFA is no longer a register plus a
 * number, but a word that the prologue saved.
 */
#include <alloca.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "work.h"

static volatile long many = 100;

FN long fn_leaf(void)
{
	block();
	return 1;
}

FN long fn_aligned_32(long a, long b, long c, long d, long e, long f, long g)
{
	volatile float v[8] __attribute__((aligned(32))) = { 1 };
	long r = fn_leaf();

	KEEP();
	return r + (long)v[a & 7] + b + c + d + e + f + g;
}

/* An aligned array and a stack that moves: the frame is found by a third register. */
FN long fn_aligned_64_alloca(long n)
{
	volatile char v[64] __attribute__((aligned(64)));
	char *p = alloca((size_t)n); // cppcheck-suppress allocaCalled
	long r;

	memset(p, 1, (size_t)n);
	v[0] = p[1];
	r = fn_aligned_32(1, 2, 3, 4, 5, 6, n);
	KEEP();
	return r + v[0] + p[0];
}

FN long fn_aligned_4096(long n)
{
	volatile char v[4096] __attribute__((aligned(4096)));
	long r;

	v[n] = 1;
	r = fn_aligned_64_alloca(n);
	KEEP();
	return r + v[n];
}

FN void *fn_thread(void *arg)
{
	chain("fn_leaf;fn_aligned_32;fn_aligned_64_alloca;fn_aligned_4096;fn_thread");
	fn_aligned_4096(many);
	KEEP();
	return arg;
}

int main(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn_thread, NULL))
		return 1;
	chain("fn_leaf;fn_aligned_32;main");
	fn_aligned_32(1, 2, 3, 4, 5, 6, many);
	KEEP();
	return 0;
}
