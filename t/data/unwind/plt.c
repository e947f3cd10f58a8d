/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks in a function of a library that is called by way of the procedure
 * linkage table, and below one that calls back into the program.
 */
#include <pthread.h>

#include "work.h"

long fn_in_library(long n);
long fn_calls_back(long (*back)(long n), long n);

FN long fn_called_back(long n)
{
	long r = fn_in_library(n);

	KEEP();
	return r + 1;
}

FN void *fn_thread(void *arg)
{
	chain("fn_in_library;fn_called_back;fn_calls_back;fn_thread");
	fn_calls_back(fn_called_back, (long)arg);
	KEEP();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	(void)argv;
	if (pthread_create(&t, NULL, fn_thread, NULL))
		return 1;
	chain("fn_in_library;main");
	fn_in_library(argc);
	KEEP();
	return 0;
}
