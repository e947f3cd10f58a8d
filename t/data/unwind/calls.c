/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that block below the calls and frames that every compiler makes;
 * built with many flags.
 *
 *   calls [DEPTH [BYTES]]   DEPTH: how often fn_recurse calls itself, 30 unless
 *                           given; BYTES: of the threads' stacks, 1 MiB
 */
#include <alloca.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "work.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile long many = 3000;
static long depth = 30;

FN long fn_leaf(void)
{
	block();
	return 1;
}

FN long fn_middle(long a, long b, long c, long d, long e, long f, long g, long h)
{
	long r = fn_leaf();

	KEEP();
	return a + b + c + d + e + f + g + h + r;
}

FN long fn_outer(void)
{
	/* two arguments on the stack */
	long r = fn_middle(1, 2, 3, 4, 5, 6, many, many + 1);

	KEEP();
	return r + 1;
}

FN int fn_compare(const void *a, const void *b)
{
	struct timespec ts = { .tv_sec = 1000 };

	nanosleep(&ts, NULL);
	KEEP();
	return memcmp(a, b, 4);
}

FN void *fn_sort(void *arg)
{
	static int v[3] = { 3, 1, 2 };

	chain("fn_compare;fn_sort");
	qsort(v, 3, sizeof(v[0]), fn_compare);
	KEEP();
	return arg;
}

FN void *fn_wait(void *arg)
{
	chain("fn_wait");
	pthread_mutex_lock(&lock);
	pthread_cond_wait(&never, &lock);
	pthread_mutex_unlock(&lock);
	return arg;
}

FN long fn_alloca(long n)
{
	char *p = alloca((size_t)n); // cppcheck-suppress allocaCalled
	long r;

	memset(p, 1, (size_t)n);
	r = fn_leaf();
	KEEP();
	return r + p[n / 2];
}

FN long fn_large(long n)
{
	volatile char big[40000];
	long r;

	big[n] = 1;
	r = fn_alloca(n);
	KEEP();
	return r + big[n + 1];
}

FN void *fn_frames(void *arg)
{
	chain("fn_leaf;fn_alloca;fn_large;fn_frames");
	fn_large(many);
	KEEP();
	return arg;
}

/* The call is the last instruction: the return address is past the function. */
FN __attribute__((noreturn)) void fn_never_returns(void)
{
	block();
	_exit(0);
}

FN void fn_last_call(long n)
{
	if (n)
		fn_never_returns();
	KEEP();
}

FN void *fn_no_return(void *arg)
{
	chain("fn_never_returns;fn_last_call;fn_no_return");
	fn_last_call(many);
	KEEP();
	return arg;
}

FN long fn_recurse(long n)
{
	long r = n > 1 ? fn_recurse(n - 1) : fn_leaf();

	KEEP();
	return r + n;
}

FN void *fn_deep(void *arg)
{
	size_t size = 64 + 11 * (size_t)depth;
	char *names = malloc(size), *p = stpcpy(names, "fn_leaf");

	for (long i = 0; i < depth; i++)
		p = stpcpy(p, ";fn_recurse");
	stpcpy(p, ";fn_deep");
	chain(names);
	fn_recurse(depth);
	KEEP();
	free(names);
	return arg;
}

FN double fn_variadic(double first, ...)
{
	va_list ap;
	double r = first;

	va_start(ap, first);
	r += va_arg(ap, double) + (double)fn_leaf();
	KEEP();
	r += (double)va_arg(ap, int);
	va_end(ap);
	return r;
}

FN void *fn_floats(void *arg)
{
	volatile double d = 1.5;

	chain("fn_leaf;fn_variadic;fn_floats");
	d = fn_variadic(d, d, 3);
	KEEP();
	return arg;
}

int main(int argc, char **argv)
{
	void *(*const threads[])(void *) = { fn_sort, fn_wait, fn_frames, fn_no_return, fn_deep, fn_floats };
	pthread_attr_t attr;
	pthread_t t;

	if (argc > 1)
		depth = atol(argv[1]);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, argc > 2 ? (size_t)atol(argv[2]) : 1 << 20);
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
		if (pthread_create(&t, &attr, threads[i], NULL))
			return 1;
	chain("fn_leaf;fn_middle;fn_outer;main");
	fn_outer();
	KEEP();
	return 0;
}
