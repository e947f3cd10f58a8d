/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procparse - what /proc/PID/task/TID tells of a thread: the text of its
 * small files, as numbers.
 *
 * Nobody vouches for the text: a name may hold any byte, a read may be cut
 * short, and another kernel may write something else. Every function looks at
 * LEN bytes and no further, needs no NUL, and is false for what is no such
 * text, with *RET as it was.
 *
 * Formats: proc_pid_stat(5), proc_pid_status(5), proc_pid_syscall(5),
 * proc_pid_wchan(5), proc_pid_stack(5); fs/proc/array.c and fs/proc/base.c of
 * Linux; schedstat: Documentation/scheduler/sched-stats.rst.
 */
#ifndef STACKTOOLS_PROCPARSE_H
#define STACKTOOLS_PROCPARSE_H

#include "base/base.h"
#include "system/proc.h"

/* schedstat: three numbers. */
struct procparse_schedstat {
	uint64_t run_ns; /* on a CPU */
	uint64_t delay_ns; /* runnable, waiting for a CPU */
	uint64_t slices; /* how often it was given a CPU */
};
bool procparse_schedstat(const char *p, size_t len, struct procparse_schedstat *ret);

/*
 * A stat that is read in the middle of execve(2) has no addresses: the memory of the new program is
 * there, the program is not in it yet. Its name may be the old one or the new one.
 */
#define PROCPARSE_NO_IMAGE UINT64_C(1)

struct procparse_stat {
	uint32_t tid, ppid;
	char comm[PROCINFO_COMM_LEN]; /* any byte but NUL */
	char state; /* letter of ps(1) */
	bool kthread;
	uint64_t start_ticks; /* since the machine started, in units of sysconf(_SC_CLK_TCK) */
	/* the addresses of its program and stack, mixed: an exec changes it; 0 = hidden */
	uint64_t image;
};
bool procparse_stat(const char *p, size_t len, struct procparse_stat *ret);

struct procparse_status {
	uint32_t tgid, ns_tgid, ns_tid; /* ns_: in the innermost PID namespace of the thread */
	uint64_t voluntary, involuntary; /* context switches */
};
bool procparse_status(const char *p, size_t len, struct procparse_status *ret);

struct procparse_syscall {
	bool running; /* on a CPU, or about to be: nothing else is known */
	int32_t nr; /* -1: waits, but in no system call */
	uint64_t args[6];
	uint64_t sp, pc;
};
bool procparse_syscall(const char *p, size_t len, struct procparse_syscall *ret);

/* wchan: the length of the kernel function's name at P; 0 where there is none, "0" or nothing. */
size_t procparse_wchan(const char *p, size_t len);

/* One line of stack: "[<0>] name+0x12/0x34 [module]". */
struct procparse_frame {
	const char *name, *module; /* in the text, not terminated; module NULL = the kernel itself */
	size_t name_len, module_len;
	uint64_t offset, size; /* into the function, and of it */
};

/* The line at *P, and *P moves behind it; false at the end and at what is no such line. */
bool procparse_frame(const char **p, const char *end, struct procparse_frame *ret);

#endif
