/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The library of lazy.c and plt.c: an indirect function whose resolver blocks, and plain ones. */
#include <stdlib.h>

#include "work.h"

long fn_indirect(long a, double b);
typedef long (*indirect)(long a, double b);
indirect fn_resolve(void);

long fn_in_library(long n);
long fn_calls_back(long (*back)(long n), long n);

FN long fn_real(long a, double b)
{
	return a + (long)b;
}

FN void fn_in_resolver(void)
{
	if (!getenv("LD_AUDIT"))
		block();
}

FN indirect fn_resolve(void)
{
	fn_in_resolver();
	KEEP();
	return fn_real;
}

long fn_indirect(long a, double b) __attribute__((ifunc("fn_resolve")));

FN long fn_in_library(long n)
{
	block();
	return n;
}

FN long fn_calls_back(long (*back)(long n), long n)
{
	long r = back(n);

	KEEP();
	return r + 1;
}
