/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process and its child, which has the same mappings, blocked in different functions. */
#include "work.h"

FN void fn_parent(void)
{
	chain("fn_parent;main");
	block();
}

FN void fn_child(void)
{
	chain("fn_child;main");
	dprintf(1, "child %d\n", getpid());
	block();
}

int main(void)
{
	if (fork())
		fn_parent();
	else
		fn_child();
	KEEP();
	return 0;
}
