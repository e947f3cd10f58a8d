/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks in a library that is loaded by dlopen(3).
 *
 *   dl LIBRARY constructor|function|later
 *
 * later: loads it when SIGUSR1 comes, and blocks in its function.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

FN void fn_load(const char *library, const char *mode)
{
	void (*fn)(void);
	void *lib;

	setenv("DL_MODE", mode, 1);
	lib = dlopen(library, RTLD_NOW);
	if (!lib)
		exit(1);
	*(void **)&fn = dlsym(lib, "fn_library");
	fn();
	KEEP();
}

FN void fn_nothing(int sig)
{
	(void)sig;
}

int main(int argc, char **argv)
{
	sigset_t all;

	if (argc < 3)
		return 1;
	sigfillset(&all);
	if (!strcmp(argv[2], "later")) {
		struct sigaction sa = { .sa_handler = fn_nothing };

		sigaction(SIGUSR1, &sa, NULL);
		dprintf(1, "waiting\n");
		pause();
	}
	chain(strcmp(argv[2], "constructor") ? "fn_library;fn_load;main" : "fn_constructor;fn_load;main");
	fn_load(argv[1], argv[2]);
	KEEP();
	return 0;
}
