/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions inside a function (GNU C), whose code lies outside of the outer one's. */
#include <stdio.h>

static int apply(int (*f)(int), int n)
{
	int s = 0;

	for (int i = 0; i < n; i++)
		s += f(i);
	return s;
}

__attribute__((noinline)) int surrounding(int n)
{
	int k = n * 3;
	__attribute__((noinline)) int inner(int x)
	{
		volatile int z = x * k;

		return z + n;
	}
	__attribute__((noinline)) int plain(int x)
	{
		volatile int z = x;

		return z * 7;
	}

	return apply(inner, n) + plain(n);
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("%d\n", surrounding(argc));
	return 0;
}
