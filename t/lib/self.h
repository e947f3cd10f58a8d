/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a unit test asks about its own process, and functions that run in a copy of it. */
#ifndef STACKTOOLS_T_SELF_H
#define STACKTOOLS_T_SELF_H

#include "base/base.h"

#include <dirent.h>
#include <execinfo.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static inline size_t self_open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* The vdso, which is a small ELF file, and its size; NULL = none. */
static inline const uint8_t *self_vdso(size_t *len)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned long start, end;
	const uint8_t *found = NULL;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "[vdso]") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		found = (const uint8_t *)start;
		*len = end - start;
	}
	if (f)
		fclose(f);
	return found;
}

/* The frames that libgcc's unwinder finds, without the one that a sanitizer's backtrace() puts first. */
static inline __attribute__((always_inline)) int self_frames(void **frames, int max)
{
	extern const char __executable_start, etext;
	int n = backtrace(frames, max);

	if (n && ((const char *)frames[0] < &__executable_start || (const char *)frames[0] >= &etext))
		memmove(frames, frames + 1, (size_t)--n * sizeof(*frames));
	return n;
}

/* Run FN in a process of its own. Returns its result; 255 if the process ended in another way. */
static inline int self_apart(int (*fn)(void))
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(fn());
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Make the system call NR, with FIRST as its first argument (-1 = any), fail with CODE from now on. */
static inline bool self_refuse(int nr, int first, int code)
{
	const struct scmp_arg_cmp same = SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)first);
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	bool done =
		filter &&
		seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((uint32_t)code), nr, first >= 0, &same) == 0 &&
		seccomp_load(filter) == 0;

	seccomp_release(filter);
	return done;
}

#endif
