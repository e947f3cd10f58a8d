/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_source - where the unwind tables of files come from: the disk cache, or
 * else the worker process (unwind/worker.h), whose tables are written to the
 * cache at the end.
 *
 * A file whose table cannot be made, for example because it kills the worker, is
 * counted as failed; other files are not affected. Not for several threads.
 */
#ifndef STACKTOOLS_RECORD_TABLE_SOURCE_H
#define STACKTOOLS_RECORD_TABLE_SOURCE_H

#include "base/err.h"
#include "record/vdso.h"
#include "unwind/table.h"
#include "unwind/worker.h"

#include <sys/types.h>

struct table_source;

struct table_source_opts {
	unsigned int seconds; /* for one file; 0 = that of table_worker_opts */
	table_worker_compile *compile; /* NULL = unwindcomp(); others are for tests */
};

/* Forks the worker and the cache's process: call it before anything worth protecting is open. On success the
 * caller owns *RET. */
int table_source_open(const struct table_source_opts *opts, struct table_source **ret, struct err *e);

/* Ends the worker and writes new tables to the disk cache. NULL is fine. */
void table_source_close(struct table_source *s);

/* As table_worker_fd(), table_worker_pid() and table_worker_pending(). */
int table_source_fd(const struct table_source *s);
pid_t table_source_worker(const struct table_source *s);
uint32_t table_source_store(const struct table_source *s); /* as table_cache_pid() */
size_t table_source_pending(const struct table_source *s);

enum table_result {
	TABLE_FOUND,
	TABLE_NONE, /* the file has no unwind information, or is not an ELF file */
	TABLE_FAILED
};

struct table_answer {
	uint64_t cookie; /* of the request */
	enum table_result result;
	bool compiled; /* just now, by the worker */
	struct unwindtab tab; /* if TABLE_FOUND: of at least one segment; valid until the next call */
};

/*
 * Request the table of file FD, which stays the caller's. KEY identifies it for
 * the disk cache; its build ID is filled in. KEY may be NULL: the table is
 * compiled. Returns 1 if *RET is the answer; 0 if table_source_next() will give
 * it; -errno without descriptors or memory, which is not counted: it may succeed
 * later.
 */
int table_source_request(struct table_source *s, int fd, struct table_cache_key *key, uint64_t cookie,
	struct table_answer *ret);

/* Likewise for the vdso of this kind, which is the same in all such processes. */
int table_source_request_vdso(
	struct table_source *s, enum vdso_kind kind, uint64_t cookie, struct table_answer *ret);

/*
 * Get the next answer, in the order of the requests; waits up to TIMEOUT_MS.
 * Returns 1 and fills RET; 0 if none arrived; -EAGAIN if no worker could be
 * started; -ECHILD if none will be started any more: call table_source_fail() for
 * each request without an answer.
 */
int table_source_next(struct table_source *s, int timeout_ms, struct table_answer *ret);

/* Keep the table of answer A for the disk cache, if that is worth it. KEY: as filled in by the request. */
void table_source_keep(
	struct table_source *s, const struct table_cache_key *key, const struct table_answer *a);

/* Count a file as failed. WHY: the reason; NULL = there is no worker. */
void table_source_fail(struct table_source *s, const char *why);

/* Count a mapped file that could not be opened, for CODE (-errno), as failed. */
void table_source_fail_open(struct table_source *s, int code);

struct table_source_stats {
	uint64_t failed; /* files without a table because of an error: `why` is the last message */
	uint64_t bare; /* files without unwind information */
	uint64_t cached; /* tables from the disk cache */
	uint64_t worker_lost; /* how often no worker could be started: `worker_why` */
	char why[256], worker_why[256];
};

void table_source_stats(const struct table_source *s, struct table_source_stats *ret);

#endif
