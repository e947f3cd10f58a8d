/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker - a process that compiles unwind tables of files that nobody
 * vouches for, and can do nothing else.
 *
 * It is forked before the recorder has anything worth stealing open, and
 * enters a sandbox (system/sandbox.h): no capability, no file but those it is handed,
 * bounded memory, the system calls that the work takes. It gets descriptors of
 * files over a socket, each with a memfd for the table, which is copied before
 * it is looked at. A worker that crashes, is killed or says something that
 * makes no sense is replaced, and the file it worked on is answered with -EIO;
 * one that takes too long over a file is ended and the answer is -ETIMEDOUT.
 * A stopped one (SIGSTOP) takes too long as well.
 *
 * All calls come from one thread, the one that opened it: when that ends the
 * worker is killed. Whoever waits for any child (waitpid(-1)) takes its end away.
 */
#ifndef STACKTOOLS_UNWIND_WORKER_H
#define STACKTOOLS_UNWIND_WORKER_H

#include "base/err.h"

#include <sys/types.h>

/* A compiler: the table of the file FD into fresh memory (*RET, free it). It closes FD. */
typedef int table_worker_compile(int fd, uint8_t **ret, size_t *len, struct err *e);

struct table_worker;

struct table_worker_opts {
	uint64_t memory_bytes; /* of the worker's own; 0 = 4 GiB */
	unsigned int seconds; /* wall time for one file; 0 = 20 */
};

/* Fork it. OPTS may be NULL. On success *RET is the caller's. */
int table_worker_open(const struct table_worker_opts *opts, struct table_worker **ret, struct err *e);

/* The same with another compiler than unwindcomp(): how tests get one that crashes, hangs or breaks out. */
int table_worker_open_with(const struct table_worker_opts *opts, table_worker_compile *compile,
	struct table_worker **ret, struct err *e);

void table_worker_close(struct table_worker *w); /* ends the process; NULL is fine */

/*
 * For poll(2): readable when table_worker_next() has something to do: an answer
 * is there, the worker has died, a file has had its time. The same all along.
 */
int table_worker_fd(const struct table_worker *w);

/* The process, so that a recorder can leave it out; changes when it is replaced. 0 = there is none. */
pid_t table_worker_pid(const struct table_worker *w);

/*
 * Ask for the table of the ELF file FD, which the caller may close at once;
 * its offset does not matter and stays. COOKIE comes back with the answer. The
 * worker gets a descriptor for reading alone, whatever FD is open for.
 * -EMEDIUMTYPE for what is no regular file, -EMFILE when no more descriptors
 * can be held; the message lacks the file's name. Requests wait in memory while
 * the worker is busy: this never blocks.
 */
int table_worker_ask(struct table_worker *w, int fd, uint64_t cookie, struct err *e);

/* Requests that are not answered yet. */
size_t table_worker_pending(const struct table_worker *w);

struct table_worker_answer {
	uint64_t cookie;
	int error; /* 0, or -errno with the message in `why`; a table of no segments is no error */
	const uint8_t *bytes; /* the table, not checked yet, aligned to 8; valid until the next call */
	size_t len;
	char why[256];
};

/*
 * The next answer, in the order of the requests, waiting up to TIMEOUT_MS for
 * one (0: only if it is there; -1: as long as it takes, bounded by the time
 * for one file). Returns 1 and fills RET; 0 when none came, none is pending or
 * a signal was caught; or -errno when no worker can be started: three that
 * died without having begun a file are enough, and it stays so.
 */
int table_worker_next(struct table_worker *w, int timeout_ms, struct table_worker_answer *ret, struct err *e);

/* Will no worker be started any more? Nothing is pending then, and asking fails. */
bool table_worker_over(const struct table_worker *w);

#endif
