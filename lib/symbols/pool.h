/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pool - sym_lookup() in parallel, in processes of its own.
 *
 * Each job runs in a forked process that enters a sandbox (system/sandbox.h: no capability, no file
 * but those of the job, bounded memory) and leaves its answer in a memfd. If it crashes, takes too
 * long or sends a malformed reply, only that file's names are lost, with the reason. A process
 * costs a millisecond, so small files that only root can have written share one; if it fails at one
 * of them, the next process does the rest.
 */
#ifndef STACKTOOLS_SYMBOLS_POOL_H
#define STACKTOOLS_SYMBOLS_POOL_H

#include "symbols/lookup.h"
#include "system/sandbox.h"

#include <sys/types.h>

/*
 * sym_worker - the output of the sandboxed process: the format of its answer file.
 *
 * For each task in order: a record, the bytes of the answer, and zeros up to a multiple of 8. The
 * record is written last: if it exists, so do the bytes.
 */

#define SYM_WORKER_OUT (SANDBOX_FD + 1) /* the answer file */
#define SYM_WORKER_MAGIC UINT64_C(0x31726577736e6173)

struct sym_worker_record {
	uint64_t magic;
	uint32_t number; /* of the task, from 0 */
	int32_t error; /* 0 or -errno */
	uint64_t len; /* of the answer after it */
	uint64_t ns; /* CPU time */
	char why[256];
};

/*
 * Read the record at *AT of FD, which is SIZE bytes long, and its answer into fresh memory (*BYTES,
 * NULL if the record is an error); moves *AT on. -ENOENT if no record is complete, -EPROTO if it is
 * not a valid record of task NUMBER, -ENOMEM.
 */
int sym_worker_next(
	int fd, uint64_t size, uint32_t number, uint64_t *at, struct sym_worker_record *ret, uint8_t **bytes);

struct sym_reader_opts {
	unsigned int jobs; /* in parallel; 0 = number of CPUs online */
	uint64_t memory_bytes; /* for each process; 0 = 2 GiB */
	unsigned int seconds; /* wall-clock time for each job; 0 = 60 */
	/*
	 * Deadline for all jobs on CLOCK_MONOTONIC: unfinished ones fail. NULL = no deadline.
	 * Another thread may change it: this takes effect within a fifth of a second.
	 */
	const _Atomic uint64_t *end_ns;
	/* called a few times a second while waiting for a process; may be NULL */
	void (*tick)(void *ctx);
	void *tick_ctx;
};

struct sym_reader_job {
	struct sym_lookup_input in; /* open files: the pool closes none */
	void *ctx;
	/* out */
	uint8_t *bytes; /* the checked answer; the caller frees it; NULL = failed */
	size_t len;
	struct sym_answer answer; /* view of BYTES */
	int error; /* -errno: -EIO = process ended or sent a bad reply; -ETIMEDOUT; -ETIME = end_ns */
	char why[256];
	uint64_t ns; /* CPU time, measured by the process itself */
	uint64_t memory_bytes; /* peak resident memory of the process (ru_maxrss) */
};

/* The function that answers: sym_lookup() or a test's substitute. It runs in the sandbox. */
typedef int sym_reader_task(const struct sym_lookup_input *in, uint8_t **ret, size_t *len, struct err *e);

/*
 * Run JOBS, largest first (by the size of symbol tables and debug information, and n_vaddrs). Each
 * job holds its own result; DONE (may be NULL) is called for each when it ends. 0, or -errno if no
 * process can be started at all.
 */
int sym_reader_run(const struct sym_reader_opts *o, struct sym_reader_job *jobs, size_t n,
	void (*done)(void *ctx, struct sym_reader_job *job), void *done_ctx, struct err *e);
int sym_reader_run_with(const struct sym_reader_opts *o, sym_reader_task *lookup, struct sym_reader_job *jobs,
	size_t n, void (*done)(void *ctx, struct sym_reader_job *job), void *done_ctx, struct err *e);

#endif
