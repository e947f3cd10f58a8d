/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk_tables - the unwind tables of the files that recorded processes map, in
 * this process's own memory: for walks without BPF.
 *
 * A table comes from the disk cache, else from the worker process
 * (unwind/worker.h), when a walk first comes to its file. It is kept to the
 * end. A file whose table cannot be made, for it kills the worker, say, is
 * counted once, and has none; what is wrong with one file is no matter of another's.
 * Not for several threads.
 */
#ifndef STACKTOOLS_PROCFS_WALK_TABLES_H
#define STACKTOOLS_PROCFS_WALK_TABLES_H

#include "base/err.h"
#include "unwind/walk.h"
#include "unwind/worker.h"

#include <sys/stat.h>
#include <sys/types.h>

struct walktables;

struct walktables_opts {
	uint64_t bytes; /* of all tables; 0 = 512 MiB. A table beyond that is dropped */
	unsigned int seconds; /* for one file; 0 = 5 */
	table_worker_compile *compile; /* NULL = unwindcomp(); others are for tests */
};

/* Forks the worker: call it before anything worth protecting is open. On success *RET is the caller's. */
int walktables_open(const struct walktables_opts *opts, struct walktables **ret, struct err *e);

/* Writes new tables to the disk cache. NULL is fine. */
void walktables_close(struct walktables *t);

pid_t walktables_worker(const struct walktables *t); /* 0 = there is none now, or T is NULL */

#define WALKTABLES_NONE UINT32_MAX

/* The number of the file of this status, if it is known; else WALKTABLES_NONE. Numbers stay. */
uint32_t walktables_find(const struct walktables *t, const struct stat *st);

/*
 * Ask for the table of a file that is not known yet: FD, which stays the
 * caller's, of status ST; ST NULL = of no identity, found by its number alone.
 * WALKTABLES_NONE without memory.
 */
uint32_t walktables_add(struct walktables *t, const struct stat *st, int fd);

/* That of the vdso, which is every 64-bit process's; likewise. */
uint32_t walktables_vdso(struct walktables *t);

/* A file that could not be had, for CODE: counted as one without a table. */
void walktables_miss(struct walktables *t, int code);

/*
 * What is known of the code at OFFSET of file FILE, as snapwalk_opts.find. For
 * a table that is on its way it waits up to *WAIT_NS, from which that time is taken.
 */
enum snapwalk_code walktables_rule(struct walktables *t, uint32_t file, uint64_t offset, uint64_t *wait_ns,
	const struct unwind_rule **rule);

struct walktables_stats {
	uint64_t files; /* that were looked at */
	uint64_t failed; /* of them, without a table for an error: `why` is the last one's message */
	uint64_t bare; /* of them, without unwind information */
	uint64_t dropped; /* of them, for which there was no room */
	uint64_t cached; /* tables that the disk cache had */
	uint64_t rows, bytes;
	uint64_t worker_lost; /* how often no process could be had that makes them: `worker_why` */
	char why[256], worker_why[256];
};

void walktables_stats(const struct walktables *t, struct walktables_stats *ret);

#endif
