/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sampler - a sample of a thread through /proc: whether it waits, where, and what
 * the scheduler has accounted.
 *
 * schedstat is read first. If it has not changed, the thread has not run since,
 * so everything else is unchanged too and is not read again. It is read once more
 * at the end: a thread that has run meanwhile does not count as waiting.
 *
 * A process that has dropped its privileges has a helper (procfs/helper.h), which
 * copies what takes them. Any process may read schedstat, so this process reads
 * that of each thread, and requests the files of all that have run at once.
 *
 * The files stay open between samples, for as many threads as the limit on
 * descriptors allows; the others are opened for each sample. An open file of
 * /proc belongs to one thread for good: if the number is reused, it does not lead
 * to the other thread.
 */
#ifndef STACKTOOLS_PROCFS_SAMPLER_H
#define STACKTOOLS_PROCFS_SAMPLER_H

#include "base/base.h"
#include "procfs/helper.h"
#include "system/proc.h"

/*
 * procparse - the text of the small files of a thread in /proc/PID/task/TID, as
 * numbers.
 *
 * The text is untrusted input: a name may hold any byte, a read may be cut short,
 * and another kernel may write something else. Every function reads LEN bytes and
 * no more, and needs no NUL. It returns false, with *RET unchanged, if the text
 * is malformed.
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
 * A stat that is read in the middle of execve(2) has no addresses: the memory of
 * the new program exists, but the program is not in it yet. Its name may be the
 * old one or the new one.
 */
#define PROCPARSE_NO_IMAGE UINT64_C(1)

struct procparse_stat {
	uint32_t tid, ppid;
	char comm[PROCINFO_COMM_LEN]; /* any byte but NUL */
	char state; /* letter of ps(1) */
	bool kthread;
	uint64_t start_ticks; /* since the machine started, in units of sysconf(_SC_CLK_TCK) */
	/* a hash of the addresses of its program and stack: an exec changes it; 0 = hidden */
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
	int32_t nr; /* -1: waits, but not in a system call */
	uint64_t args[6];
	uint64_t sp, pc;
};
bool procparse_syscall(const char *p, size_t len, struct procparse_syscall *ret);

/* wchan: the length of the kernel function's name at P; 0 if there is none ("0" or nothing). */
size_t procparse_wchan(const char *p, size_t len);

/* One line of stack: "[<0>] name+0x12/0x34 [module]". */
struct procparse_frame {
	const char *name, *module; /* in the text, not terminated; module NULL = the kernel itself */
	size_t name_len, module_len;
	uint64_t offset, size; /* bytes: into the function, and of the function */
};

/* Parse the line at *P and move *P past it. False at the end, or if the line is malformed. */
bool procparse_frame(const char **p, const char *end, struct procparse_frame *ret);

/* What all samples share. */
struct sampler {
	struct helper *helper; /* NULL = only our own permissions */
	unsigned int wanted; /* bits of enum procfile: syscall, stack and wchan are optional */
	bool memory; /* and the memory of stacks */
	size_t n_open, max_open; /* descriptors */
	int no_stack; /* -errno: stack is refused for every thread; 0 = it is not */
	struct helper_texts texts[HELPER_THREADS]; /* what the helper has read of threads */
	const struct helper_texts *given; /* what of the current thread; NULL = nothing */
	char text[PROCFILE_TEXT]; /* of the last `stack` or `status` that was read */
};

/* A thread. Zeroed, with its ids set and `fd` -1, it was never sampled. */
struct sampler_thread {
	uint32_t pid, tid;
	int fd[PROCFILE_LOOK];
	int refused[PROCFILE_LOOK]; /* -errno of files that may not be read; 0 = they may */
	bool kept; /* the helper has files of it open */
	bool has_last; /* the fields below are from the last sample: */
	bool has_schedstat;
	struct procparse_schedstat sched;
	struct procparse_status status;
};

struct sampler_seen {
	uint64_t at_ns; /* CLOCK_MONOTONIC, right before schedstat was read */
	bool first; /* of this thread */
	bool same; /* it has not run since the last sample; only `sched` and `status` are set below */
	bool has_schedstat;
	bool waiting; /* off the CPU during the whole sample */
	struct procparse_schedstat sched; /* zeroes without */
	struct procparse_status status;
	struct procparse_stat stat;
	bool has_syscall;
	struct procparse_syscall syscall;
	char wchan[128]; /* "" = not known; cut to fit */
	const char *stack; /* in struct sampler, valid until the next sample; NULL = not known */
	size_t stack_len;
	const struct helper_texts *copied; /* likewise: with the stack's memory; NULL = it was not copied */
};

/*
 * Uses up to half of the descriptors that this process may have, and raises the
 * soft limit for that. HELPER, which must outlive L, reads what takes privileges.
 * If it ends, only our own permissions are left. MEMORY: it copies stacks too,
 * for which it must have been started.
 */
void sampler_init(struct sampler *l, unsigned int wanted, bool memory, struct helper *helper);

#define SAMPLER_RAN 1

/*
 * Sample T. -ESRCH: it is gone, or a zombie. Another -errno with the message: it
 * exists, but its files cannot be read. SAMPLER_RAN: it has run since the last
 * sample, and the helper can read its files, with those of others:
 * sampler_request().
 */
int sampler_take(struct sampler *l, struct sampler_thread *t, struct sampler_seen *s, struct err *e);

/*
 * Have the helper read the files of the N threads at T, at most HELPER_THREADS.
 * Returns how many of them it has read, at least 1: then take the sample of each
 * by sampler_requested(), as sampler_take() would, AT counting from 0.
 */
size_t sampler_request(struct sampler *l, struct sampler_thread *const *t, size_t n);
int sampler_requested(
	struct sampler *l, size_t at, struct sampler_thread *t, struct sampler_seen *s, struct err *e);

void sampler_forget(struct sampler *l, struct sampler_thread *t); /* close its files */

/* The bits of include/linux/sched.h for a state letter of stat; UINT32_MAX if the letter is not a wait. */
uint32_t sampler_state(char letter);

#endif
