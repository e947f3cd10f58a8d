/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * syscall_filter - system call filters, built from tables of rules with libseccomp.
 *
 * A system call that no rule matches kills the process or is refused; one of
 * another ABI (x32, 32 bits) kills it. Sources: seccomp_rule_add(3), seccomp(2).
 */
#ifndef STACKTOOLS_SYSTEM_SYSCALL_FILTER_H
#define STACKTOOLS_SYSTEM_SYSCALL_FILTER_H

#include "base/err.h"

#include <linux/filter.h>
#include <seccomp.h>

struct syscall_rule {
	int call; /* SCMP_SYS(name) */
	int error; /* refuse the call with this errno; 0 = allow it */
	unsigned int n; /* conditions, all of which must hold */
	struct scmp_arg_cmp when[2];
};

/* Rows of a table: allow the call; allow it if one condition holds; allow it if both hold; refuse it. */
#define SYSCALL_ALLOW(name)                                                                                  \
	{                                                                                                    \
		.call = SCMP_SYS(name)                                                                       \
	}
#define SYSCALL_ALLOW_IF(name, a)                                                                            \
	{                                                                                                    \
		.call = SCMP_SYS(name), .n = 1, .when = { a }                                                \
	}
#define SYSCALL_ALLOW_IF_BOTH(name, a, b)                                                                    \
	{                                                                                                    \
		.call = SCMP_SYS(name), .n = 2, .when = { a, b }                                             \
	}
#define SYSCALL_REFUSE(name, errnum)                                                                         \
	{                                                                                                    \
		.call = SCMP_SYS(name), .error = (errnum)                                                    \
	}

/*
 * Conditions: the bits MASK of argument N are BITS; argument N is VALUE as an int,
 * whose upper 32 bits are undefined.
 */
#define SYSCALL_BITS(n, mask, bits) SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, mask, bits)
#define SYSCALL_INT(n, value) SYSCALL_BITS(n, UINT32_MAX, value)

/*
 * Build the filter program of N rules; those that name a system call which this
 * architecture does not have are ignored. What no rule matches is refused with the
 * errno OTHERWISE, or, if that is 0, kills the process. Release *RET with syscall_filter_free().
 * Allocates memory, so call it before the fork. Takes 20 microseconds, half a
 * millisecond the first time. The program is empty (len 0) if the kernel has no
 * filters.
 */
int syscall_filter_make(
	const struct syscall_rule *rules, size_t n, int otherwise, struct sock_fprog *ret, struct err *e);
void syscall_filter_free(struct sock_fprog *f); /* a zeroed one is fine */

/* Install F permanently for this thread and its children. no_new_privs must be set. */
int syscall_filter_install(const struct sock_fprog *f, struct err *e);

/* The same for all threads of the process. */
int syscall_filter_install_all(const struct sock_fprog *f, struct err *e);

#endif
