/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The library of lazy.c: an indirect function whose resolver blocks. */
#include <stdlib.h>

#include "work.h"

long fn_indirect(long a, double b);
typedef long (*indirect)(long a, double b);
indirect fn_resolve(void);

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
