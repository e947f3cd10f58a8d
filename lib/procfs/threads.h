/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * threads - the threads that a recording by /proc looks at, and their
 * processes.
 */
#ifndef STACKTOOLS_PROCFS_THREADS_H
#define STACKTOOLS_PROCFS_THREADS_H

#include "base/intern.h"
#include "procfs/estimator.h"
#include "procfs/helper.h"
#include "procfs/sampler.h"
#include "system/cgroup.h"

struct procset_process {
	uint32_t tgid;
	uint64_t start_boot_ns; /* when it started, CLOCK_BOOTTIME */
	uint32_t exec_id; /* how often it was seen to have become another image */
	uint64_t image; /* struct procparse_stat; 0 = hidden */
	bool kthread;
	size_t n_threads;
	uint64_t scanned_ns, rescanned_ns; /* when the mappings of its image were read, and again */
	void *walker; /* the owner's */
	bool no_walker; /* there is none to be had */
};

struct procset_thread {
	struct procset_process *proc;
	struct sampler_thread look;
	uint64_t start_ticks; /* of the first look: another one is another thread of the same number */
	struct estimator wait;
	struct estimator_place place; /* where it was seen last */
	struct procparse_syscall call; /* the system call of that; meaningless without */
	bool has_call;
	bool stopped; /* by the recorder itself, since the last look */
	bool unreadable, told; /* that, and what of it may not be read, was counted */
	char comm[PROCINFO_COMM_LEN];
};

/* A zeroed one, but for the first two, is empty. */
struct procset {
	void (*end)(void *ctx,
		struct procset_process *p); /* is told of a process before it is released; or NULL */
	void *ctx;
	struct procset_thread **threads;
	size_t n, cap;
	struct procset_process **procs;
	size_t n_procs, max_procs;
	struct idmap by_tid, by_tgid;
	size_t stale; /* keys of both that lead nowhere any more */
};

void procset_free(struct procset *s); /* releases what it holds */

struct procset_thread *procset_find(const struct procset *s, uint32_t pid, uint32_t tid);
struct procset_process *procset_process(const struct procset *s, uint32_t tgid);

/* A new thread, and its process where that is new: n_threads is 1 then. NULL without memory or room. */
struct procset_thread *procset_add(struct procset *s, uint32_t pid, uint32_t tid);

/* Thread AT of `threads` is gone: the last one takes its place. Its process goes with its last thread. */
void procset_remove(struct procset *s, size_t at);

/*
 * procthreads - which threads a recording by /proc is of, found by reading
 * its directories.
 *
 * A thread or process that begins and ends between two scans is not found.
 * Children of targets are found by their parent's PID: one whose parent had
 * ended before the scan is not.
 */

struct procthreads_opts {
	bool all; /* every process but this one */
	uint32_t no[3]; /* and but these; 0 = none */
	bool kthreads; /* with all: kernel threads too */
	bool follow; /* children of targets */
	const uint32_t *pids, *tids;
	size_t n_pids, n_tids;
	const char *const *comms; /* every process of one of these names */
	size_t n_comms;
	struct helper *helper; /* for what /proc hides from us; NULL = none */
	const struct cgroup *in; /* of these, only what is in that one or below it; NULL = all */
};

struct procthreads;

/* What O points to has to stay. -ENOENT where there is no /proc. */
int procthreads_open(const struct procthreads_opts *o, struct procthreads **ret, struct err *e);
void procthreads_close(struct procthreads *t); /* NULL is fine */

/* Process PID is a target too from now on. */
int procthreads_add(struct procthreads *t, uint32_t pid, struct err *e);

/*
 * FN for each thread of the targets that is there now, and in the cgroup now, whether it was there before or
 * not.
 */
void procthreads_scan(struct procthreads *t, void (*fn)(void *ctx, uint32_t pid, uint32_t tid), void *ctx);

/* What /proc/PID/stat tells of the process and its main thread; false when it is gone. */
bool procthreads_stat(const struct procthreads *t, uint32_t pid, struct procparse_stat *ret);

/* Does /proc hide the processes of other users (hidepid)? Then -a and -c are of fewer than there are. */
bool procthreads_hidden(void);

#endif
