/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pool - sym_lookup() in processes of their own, side by side.
 *
 * Each job is done by a process that is forked for it, enters a sandbox
 * (system/sandbox.h: no capability, no file but those of the job, bounded memory) and leaves its
 * answer in a memfd. One that crashes, takes too long or sends a malformed reply costs
 * that file's names, with the reason, and nothing else. A process costs a
 * millisecond, so small files that only root can have written share one: those behind one that
 * goes wrong are done by the next.
 */
#ifndef STACKTOOLS_SYMBOLS_POOL_H
#define STACKTOOLS_SYMBOLS_POOL_H

#include "symbols/lookup.h"
#include "system/sandbox.h"

#include <sys/types.h>

/*
 * sym_worker - the inner side of symchild_*(): what the sandboxed process does, and
 * how its answers lie in the file that it leaves.
 *
 * For each task, one behind the other, a record, the answer's bytes, and
 * zeros up to a multiple of 8. The record is written last: where it is,
 * the bytes are.
 */

#define SYM_WORKER_OUT (SANDBOX_FD + 1) /* the file that it leaves */
#define SYM_WORKER_MAGIC UINT64_C(0x31726577736e6173)

struct sym_worker_record {
	uint64_t magic;
	uint32_t number; /* of the task, from 0 */
	int32_t error; /* 0 or -errno */
	uint64_t len; /* of the answer behind it */
	uint64_t ns; /* CPU time */
	char why[256];
};

/*
 * The record at *AT of FD, which is SIZE bytes long, and its answer in fresh memory
 * (*BYTES, NULL for an error's); *AT moves on. -ENOENT where none is
 * complete, -EPROTO where it is none of task NUMBER, -ENOMEM.
 */
int sym_worker_next(
	int fd, uint64_t size, uint32_t number, uint64_t *at, struct sym_worker_record *ret, uint8_t **bytes);

struct sym_reader_opts {
	unsigned int jobs; /* at the same time; 0 = as many as CPUs are online */
	uint64_t memory_bytes; /* of each; 0 = 2 GiB */
	unsigned int seconds; /* wall time of each; 0 = 60 */
	/*
	 * CLOCK_MONOTONIC, of all: what is not done by then fails; NULL = as long as it takes. Another
	 * thread may change it: that is seen within a fifth of a second.
	 */
	const _Atomic uint64_t *end_ns;
	/* called a few times a second while a process is waited for; NULL is fine */
	void (*tick)(void *ctx);
	void *tick_ctx;
};

struct sym_reader_job {
	struct sym_lookup_input in; /* open files: symchild closes none */
	void *ctx;
	/* out */
	uint8_t *bytes; /* the answer, checked; the caller's to free; NULL = failed */
	size_t len;
	struct sym_answer answer; /* of BYTES */
	int error; /* -errno: -EIO = the process ended or lied; -ETIMEDOUT; -ETIME = end_ns */
	char why[256];
	uint64_t ns; /* CPU time, by its own clock */
	uint64_t memory_bytes; /* most resident memory of the process (ru_maxrss) */
};

/* What answers, sym_lookup() or a test's substitute; it runs in the sandbox. */
typedef int sym_reader_look(const struct sym_lookup_input *in, uint8_t **ret, size_t *len, struct err *e);

/*
 * Run JOBS, the largest (by n_vaddrs and size of debug information) first. Each job's
 * outcome is in it; DONE (may be NULL) is called for each as it ends. 0, or -errno
 * where no process can be started at all.
 */
int sym_reader_run(const struct sym_reader_opts *o, struct sym_reader_job *jobs, size_t n,
	void (*done)(void *ctx, struct sym_reader_job *job), void *done_ctx, struct err *e);
int sym_reader_run_with(const struct sym_reader_opts *o, sym_reader_look *look, struct sym_reader_job *jobs,
	size_t n, void (*done)(void *ctx, struct sym_reader_job *job), void *done_ctx, struct err *e);

#endif
