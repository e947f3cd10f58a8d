/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/sysname.h"

static const char *const names[] = {
#include <syscalls.h>
};

const char *sysname_find(int32_t nr)
{
	return nr >= 0 && (size_t)nr < ARRAY_LEN(names) ? names[nr] : NULL;
}
