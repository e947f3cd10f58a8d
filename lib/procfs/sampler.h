/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sampler - one look at one thread through /proc: is it waiting, where, and
 * what has the scheduler accounted?
 *
 * schedstat is read first: where it is as before, the thread has not run
 * since, so everything else is as it was, and is not read again. It is read
 * once more at the end: a thread that has run meanwhile was not seen waiting.
 *
 * Whose process has no privileges any more has a helper (procfs/helper.h) that
 * copies what takes them. schedstat and status anybody may read.
 *
 * The files stay open between looks, as many of all threads as the limit of
 * descriptors allows; the others are opened for each look. An open file of
 * /proc is that of one thread for good: a number that is used again does not
 * lead to another one.
 */
#ifndef STACKTOOLS_PROCFS_SAMPLER_H
#define STACKTOOLS_PROCFS_SAMPLER_H

#include "base/base.h"
#include "procfs/helper.h"
#include "system/proc.h"

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

/* What all looks share. */
struct sampler {
	struct helper *helper; /* NULL = our own rights are all there are */
	unsigned int wanted; /* bits of enum procfile: syscall, stack and wchan may be left out */
	size_t n_open, max_open; /* descriptors */
	int no_stack; /* -errno: stack is refused for every thread; 0 = not */
	unsigned int given; /* files of the thread at hand whose text the helper has read: */
	struct helper_texts texts;
	char text[PROCFILE_TEXT]; /* of the last `stack` or `status` that was read */
};

/* A thread. Zeroed, with its ids set and `fd` -1, it is one that was never looked at. */
struct sampler_thread {
	uint32_t pid, tid;
	int fd[PROCFILE_LOOK];
	int refused[PROCFILE_LOOK]; /* -errno of those that may not be read; 0 = they may */
	bool kept; /* files of it are open in the helper */
	bool looked; /* what follows is of the last look: */
	bool has_schedstat;
	struct procparse_schedstat sched;
	struct procparse_status status;
};

struct sampler_seen {
	uint64_t at_ns; /* CLOCK_MONOTONIC, right before schedstat was read */
	bool same; /* the thread has not run since the last look: nothing below but `sched` and `status` is
		      set */
	bool has_schedstat;
	bool waiting; /* off the CPU, all the while it was looked at */
	struct procparse_schedstat sched; /* zeroes without */
	struct procparse_status status;
	struct procparse_stat stat;
	bool has_syscall;
	struct procparse_syscall syscall;
	char wchan[128]; /* "" = not known; cut to fit */
	const char *stack; /* in struct sampler, until the next look; NULL = not known */
	size_t stack_len;
};

/*
 * Up to half of the descriptors that this process may have are used; the soft
 * limit is raised to that end. LOOKER, which has to stay, reads what takes
 * privileges; should it end, our own rights are what is left.
 */
void sampler_init(struct sampler *l, unsigned int wanted, struct helper *helper);

/*
 * Look at T. -ESRCH: it is gone, or a zombie. Another -errno with the message:
 * it is there, but nothing of it can be read.
 */
int sampler_take(struct sampler *l, struct sampler_thread *t, struct sampler_seen *s, struct err *e);

void sampler_forget(struct sampler *l, struct sampler_thread *t); /* close what is open of it */

/* The bits of include/linux/sched.h for a letter of stat; UINT32_MAX for a letter that is no wait. */
uint32_t sampler_state(char letter);

#endif
