/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A system call by inline assembly: libc's syscall() has no frame of its own, so a walk would miss its
 * caller. */
#ifndef STACKTOOLS_T_WORK_DIRECT_H
#define STACKTOOLS_T_WORK_DIRECT_H

#include <sys/syscall.h>

#define DIRECT __attribute__((always_inline)) static inline

#if defined(__aarch64__)
DIRECT long direct_syscall(long number, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c, x3 __asm__("x3") = d;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}
#else
DIRECT long direct_syscall(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}
#endif

#endif
