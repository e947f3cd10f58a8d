/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * threadtab - the threads that had waits: what BPF told of each, and which
 * process image it belongs to.
 *
 * A thread is (tgid, tid, start of its process, number of execs), as in
 * struct offcpu_key. Pointers are valid until the next announce, get or drop.
 */
#ifndef STACKTOOLS_THREADTAB_H
#define STACKTOOLS_THREADTAB_H

#include "base/intern.h"
#include "offcpu_abi.h"

struct thread {
	uint32_t tgid, tid;
	uint32_t ns_tgid, ns_tid;
	uint64_t start_boot_ns;
	uint32_t exec_id;
	uint32_t task_flags; /* PF_*, 0 = not told */
	uint32_t image; /* of proctab; UINT32_MAX = no sample yet */
	bool dirty; /* its name is not in the capture yet */
	char comm[OFFCPU_COMM_LEN], leader_comm[OFFCPU_COMM_LEN];
};

struct threadtab {
	struct thread *threads;
	size_t n, cap;
	struct idmap by_key; /* (tgid, tid, start, exec_id) */
	struct idmap by_tid; /* (tgid, tid): the newest */
};

/* What BPF told of a thread; again, when its process has execed. */
void threadtab_announce(struct threadtab *t, const struct offcpu_ev_thread *ev);

/* The thread of KEY, a nameless new one if it was never told of; NULL without memory. */
struct thread *threadtab_get(struct threadtab *t, const struct offcpu_key *key);

/* Thread TID of TGID got another name. */
void threadtab_rename(struct threadtab *t, uint32_t tgid, uint32_t tid, const char *comm);

/* Forget the threads for which GONE says so. */
void threadtab_drop(
	struct threadtab *t, bool (*gone)(const void *ctx, const struct thread *th), const void *ctx);

void threadtab_free(struct threadtab *t); /* releases what it holds; a zeroed one is an empty table */

#endif
