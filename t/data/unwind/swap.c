/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * swap LIBRARY... - waits in the function of each library a hundred times and
 * unloads it before the next, which comes to lie at the same address. Prints the
 * address of each one's function. It runs for a while before it waits, so that
 * a recorder has heard of the library, even if a disk has blocked it for a second.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

FN void fn_naps(void)
{
	for (int i = 0; i < 100; i++)
		usleep(1000);
	KEEP();
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *lib = dlopen(argv[i], RTLD_NOW), (*fn)(void (*)(void));
		long began = now_ms();

		if (!lib)
			return 1;
		*(void **)&fn = dlsym(lib, "fn_swapped");
		while (now_ms() - began < 1500)
			;
		printf("%p\n", *(void **)&fn);
		fflush(stdout);
		fn(fn_naps);
		dlclose(lib);
	}
	return 0;
}
