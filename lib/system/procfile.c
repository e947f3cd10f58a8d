/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/procfile.h"

const char *procfile_name(enum procfile f)
{
	static const char *const names[PROCFILE_COUNT] = { "schedstat", "status", "stat", "syscall", "stack",
		"wchan", "cgroup", "exe" };

	return f < PROCFILE_COUNT ? names[f] : "";
}

uint32_t procfile_number(const char *name)
{
	uint64_t v = 0;

	for (const char *p = name; *p; p++) {
		if (*p < '0' || *p > '9' || v > UINT32_MAX / 16)
			return 0;
		v = v * 10 + (uint64_t)(*p - '0');
	}
	return (uint32_t)v;
}
