/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfile.h"

const char *procfile_name(enum procfile f)
{
	static const char *const names[PROCFILE_COUNT] = { "schedstat", "status", "stat", "syscall", "stack",
		"wchan", "cgroup", "exe" };

	return f < PROCFILE_COUNT ? names[f] : "";
}
