/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * syscall_filter - filters of system calls from tables of rules, by libseccomp.
 *
 * A call that no rule names kills the process, as does one of another ABI
 * (x32, 32 bits). Sources: seccomp_rule_add(3), seccomp(2).
 */
#ifndef STACKTOOLS_SYSTEM_SYSCALL_FILTER_H
#define STACKTOOLS_SYSTEM_SYSCALL_FILTER_H

#include "base/err.h"

#include <linux/filter.h>
#include <seccomp.h>

struct syscall_rule {
	int call; /* SCMP_SYS(name) */
	int error; /* refuse the call with this errno; 0 = allow it */
	unsigned int n; /* conditions, all of which have to hold */
	struct scmp_arg_cmp when[2];
};

/* Rows of a table: allow the call; where one condition holds; where both do; refuse it. */
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

/* Conditions: the bits MASK of argument N are BITS; as an int, of which the upper 32 bits are not defined, it
 * is VALUE. */
#define SYSCALL_BITS(n, mask, bits) SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, mask, bits)
#define SYSCALL_INT(n, value) SYSCALL_BITS(n, UINT32_MAX, value)

/*
 * The program of N rules; release *RET with syscall_filter_free(). It takes
 * memory, so make it before the fork: 20 microseconds, half a millisecond the
 * first time. Without instructions (len 0) on a kernel that has no filters.
 */
int syscall_filter_make(const struct syscall_rule *rules, size_t n, struct sock_fprog *ret, struct err *e);
void syscall_filter_free(struct sock_fprog *f); /* a zeroed one is fine */

/* From now on and for good, for this thread and its children. no_new_privs has to be set. */
int syscall_filter_install(const struct sock_fprog *f, struct err *e);

#endif
