/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * threads - the threads that a recording by /proc samples, and their processes.
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
	uint32_t exec_id; /* how often it was seen to become another image */
	uint64_t image; /* as in struct procparse_stat; 0 = hidden */
	bool kthread;
	size_t n_threads;
	uint64_t scanned_ns, rescanned_ns; /* when the mappings of its image were read first, and last */
	void *walker; /* managed by the set's owner */
	bool no_walker; /* it is impossible to get one */
};

struct procset_thread {
	struct procset_process *proc;
	struct sampler_thread sampled;
	uint64_t start_ticks; /* at the first sample; a change means another thread with the same number */
	struct estimator wait;
	struct estimator_place place; /* where it was last seen waiting */
	struct procparse_syscall call; /* the system call of that place, if has_call */
	bool has_call;
	bool stopped; /* by the recorder itself, since the last sample */
	bool gone; /* the last sample found it ended */
	bool unreadable, reported; /* counted already: as unreadable; for the files that may not be read */
	char comm[PROCINFO_COMM_LEN];
};

/* A zeroed one, except for the first two fields, is empty. */
struct procset {
	void (*end)(void *ctx, struct procset_process *p); /* before a process is released; may be NULL */
	void *ctx;
	struct procset_thread **threads;
	size_t n, cap;
	struct procset_process **procs;
	size_t n_procs, max_procs;
	struct idmap by_tid, by_tgid;
	size_t stale; /* dead keys of both */
};

void procset_free(struct procset *s); /* releases the contents */

struct procset_thread *procset_find(const struct procset *s, uint32_t pid, uint32_t tid);
struct procset_process *procset_process(const struct procset *s, uint32_t tgid);

/* Add a thread, and its process if that is new: n_threads is 1 then. NULL without memory or room. */
struct procset_thread *procset_add(struct procset *s, uint32_t pid, uint32_t tid);

/* Remove thread AT of `threads`: the last one takes its place. A process goes with its last thread. */
void procset_remove(struct procset *s, size_t at);

/*
 * procthreads - the threads to record, found by reading the directories of /proc.
 *
 * A thread or process that begins and ends between two scans is not found.
 * Children of targets are found by their parent's PID: a child whose parent ended
 * before the scan is not found.
 */

struct procthreads_opts {
	bool all; /* every process except this one */
	uint32_t no[4]; /* and except these; 0 = none */
	bool kthreads; /* with all: kernel threads too */
	bool follow; /* children of targets */
	const uint32_t *pids, *tids;
	size_t n_pids, n_tids;
	const char *const *comms; /* every process with one of these names */
	size_t n_comms;
	struct helper *helper; /* for what /proc hides from us; NULL = none */
	const struct cgroup *in; /* of these, only those in this cgroup or below it; NULL = all */
};

struct procthreads;

/* What O points to must outlive *RET. -ENOENT if there is no /proc. */
int procthreads_open(const struct procthreads_opts *o, struct procthreads **ret, struct err *e);
void procthreads_close(struct procthreads *t); /* NULL is fine */

/* Make process PID a target too. */
int procthreads_add(struct procthreads *t, uint32_t pid, struct err *e);

/*
 * Call FN for each thread of the targets that exists now and is in the cgroup now,
 * whether it existed before or not.
 */
void procthreads_scan(struct procthreads *t, void (*fn)(void *ctx, uint32_t pid, uint32_t tid), void *ctx);

/* Has a scan found a process named COMM, one of the names in the options? */
bool procthreads_comm_seen(const struct procthreads *t, const char *comm);

/* What /proc/PID/stat says about the process and its main thread; false if it is gone. */
bool procthreads_stat(const struct procthreads *t, uint32_t pid, struct procparse_stat *ret);

/* Does /proc hide the processes of other users (hidepid)? Then -a and -c do not find all processes. */
bool procthreads_hidden(void);

#endif
