/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * seccomp - words for writing a filter of system calls.
 *
 * A filter begins with SECCODE_BEGIN, and ends with SECCODE_KILL. Source:
 * Documentation/userspace-api/seccomp_filter.rst of Linux. Where SECCODE_ARCH
 * is not defined there are no filters.
 */
#ifndef STACKTOOLS_SYSTEM_SECCOMP_H
#define STACKTOOLS_SYSTEM_SECCOMP_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define SECCODE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SECCODE_ARCH AUDIT_ARCH_AARCH64
#endif

/* Arguments are of 64 bits; filters look at the lower half of these, which comes first. */
#define SECCODE_LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define SECCODE_WHEN(op, k, yes, no) BPF_JUMP(BPF_JMP | (op) | BPF_K, (k), (yes), (no))
#define SECCODE_MASK(k) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (k))
#define SECCODE_PERMIT BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define SECCODE_KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define SECCODE_CALL(name) SECCODE_WHEN(BPF_JEQ, SYS_##name, 0, 1), SECCODE_PERMIT
#define SECCODE_BEGIN                                                                                        \
	SECCODE_LOAD(arch), SECCODE_WHEN(BPF_JEQ, SECCODE_ARCH, 1, 0), SECCODE_KILL, SECCODE_LOAD(nr)

#endif
