/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The library of dl.c. */
#include <stdlib.h>
#include <string.h>

#include "work.h"

void fn_library(void);

__attribute__((constructor)) FN static void fn_constructor(void)
{
	const char *mode = getenv("DL_MODE");

	if (mode && !strcmp(mode, "constructor"))
		block();
	KEEP();
}

FN void fn_library(void)
{
	block();
}
