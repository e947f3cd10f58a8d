/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk_tables - the unwind tables of the files that recorded processes map, in
 * this process's own memory, for walks without BPF.
 *
 * A table is requested (record/table_source.h) when a walk first reaches its
 * file, and kept to the end. A file whose table cannot be made is counted once
 * and has none. Not for several threads.
 */
#ifndef STACKTOOLS_PROCFS_WALK_TABLES_H
#define STACKTOOLS_PROCFS_WALK_TABLES_H

#include "base/err.h"
#include "record/table_source.h"
#include "unwind/walk.h"

#include <sys/stat.h>
#include <sys/types.h>

struct walktables;

struct walktables_opts {
	uint64_t bytes; /* limit for all tables; 0 = 512 MiB. A table beyond it is dropped */
	unsigned int seconds; /* for one file; 0 = 5 */
	table_worker_compile *compile; /* NULL = unwindcomp(); others are for tests */
};

/* Forks the worker: call it before anything worth protecting is open. On success the caller owns *RET. */
int walktables_open(const struct walktables_opts *opts, struct walktables **ret, struct err *e);

/* Writes new tables to the disk cache. NULL is fine. */
void walktables_close(struct walktables *t);

pid_t walktables_worker(const struct walktables *t); /* 0 = there is none now, or T is NULL */
uint32_t walktables_store(const struct walktables *t); /* as table_cache_pid(); T may be NULL */

#define WALKTABLES_NONE UINT32_MAX

/* The number of the file with this status if it is known, else WALKTABLES_NONE. Numbers do not change. */
uint32_t walktables_find(const struct walktables *t, const struct stat *st);

/*
 * Request the table of a file that is not known yet. FD stays the caller's. ST is its status; NULL = it has
 * no identity, only its number. WALKTABLES_NONE without memory.
 */
uint32_t walktables_add(struct walktables *t, const struct stat *st, int fd);

/* The number of the vdso of this kind, which is the same in all such processes. Requests its table. */
uint32_t walktables_vdso(struct walktables *t, enum vdso_kind kind);

/* Count a file that could not be opened, for CODE, as one without a table. */
void walktables_miss(struct walktables *t, int code);

/*
 * What is known about the code at OFFSET of file FILE, as snapwalk_opts.find. Waits
 * up to *WAIT_NS for a table that was requested, and subtracts that time.
 */
enum snapwalk_code walktables_rule(struct walktables *t, uint32_t file, uint64_t offset, uint64_t *wait_ns,
	const struct unwind_rule **rule);

struct walktables_stats {
	uint64_t files; /* that walks reached */
	uint64_t dropped; /* of them, without room for the table */
	uint64_t rows, bytes;
	struct table_source_stats source;
};

void walktables_stats(const struct walktables *t, struct walktables_stats *ret);

#endif
