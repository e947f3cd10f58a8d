/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procset - the threads that a recording by /proc looks at, and their
 * processes.
 */
#ifndef STACKTOOLS_PROCSET_H
#define STACKTOOLS_PROCSET_H

#include "base/intern.h"
#include "procfs/proclook.h"
#include "procfs/procwait.h"

#define PROCSET_MAX 65536 /* threads at a time */

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
	struct proclook_thread look;
	uint64_t start_ticks; /* of the first look: another one is another thread of the same number */
	struct procwait wait;
	struct procwait_place place; /* where it was seen last */
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
	size_t n_procs, cap_procs;
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

#endif
