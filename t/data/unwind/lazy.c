/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks while the dynamic linker looks a function up that is called for the
 * first time: in the resolver of an indirect function, or in the auditor that
 * LD_AUDIT names. Link with -z lazy.
 */
#include <stdlib.h>

#include "work.h"

long fn_indirect(long a, double b);

FN long fn_calls_lazily(long n)
{
	long r = fn_indirect(n, 2.0);

	KEEP();
	return r + 1;
}

int main(int argc, char **argv)
{
	(void)argv;
	chain(getenv("LD_AUDIT") ? "fn_in_auditor;fn_calls_lazily;main"
				 : "fn_in_resolver;fn_resolve;fn_calls_lazily;main");
	fn_calls_lazily(argc);
	KEEP();
	return 0;
}
