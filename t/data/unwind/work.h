/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For programs that block at the end of known call chains: they print
 * "chain TID FUNCTION;...", leaf first, then block. Every function that a
 * chain names is main or begins with fn_, and none else does.
 */
#ifndef UNWIND_WORK_H
#define UNWIND_WORK_H

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __clang__
#define FN __attribute__((noinline, used))
#else
#define FN __attribute__((noinline, noclone, noipa, used))
#endif

/* Behind a call: then it is not a tail call. */
#define KEEP() __asm__ volatile("" ::: "memory")

#ifdef __cplusplus
extern "C" {
#endif

static inline void chain(const char *names)
{
	/* one write, so that lines of several threads do not mix */
	dprintf(1, "chain %ld %s\n", syscall(SYS_gettid), names);
}

/* Blocks inside read(2) of libc: nobody ever writes to stdin. */
static inline __attribute__((always_inline)) void block(void)
{
	char c;

	while (read(0, &c, 1) > 0)
		KEEP();
	KEEP();
}

#ifdef __cplusplus
}
#endif

#endif
