/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker - a process that compiles the unwind tables of untrusted files and can
 * do nothing else.
 *
 * It is forked before the recorder opens anything worth stealing, and enters a
 * sandbox (system/sandbox.h): no capabilities, no files except those that it
 * receives, limited memory, and only the system calls that the work needs. It
 * receives file descriptors over a socket, each with a memfd for the table,
 * which is copied before it is read. A worker that crashes, is killed or sends
 * a malformed reply is replaced, and the answer for its current file is -EIO. A
 * worker that takes too long for a file is killed, and the answer is
 * -ETIMEDOUT; this includes a stopped one (SIGSTOP).
 *
 * The thread that opened the worker must make all calls: when it ends, the
 * worker is killed. A caller of waitpid(-1) takes away the worker's exit
 * status.
 */
#ifndef STACKTOOLS_UNWIND_WORKER_H
#define STACKTOOLS_UNWIND_WORKER_H

#include "base/err.h"

#include <sys/types.h>

/* A compiler: stores the table of the file FD in new memory (*RET, released with free(3)). It closes FD. */
typedef int table_worker_compile(int fd, uint8_t **ret, size_t *len, struct err *e);

struct table_worker;

struct table_worker_opts {
	uint64_t memory_bytes; /* of the worker's own; 0 = 4 GiB */
	unsigned int seconds; /* wall-clock time for one file; 0 = 20 */
};

/* Fork the worker. OPTS may be NULL. On success the caller owns *RET. */
int table_worker_open(const struct table_worker_opts *opts, struct table_worker **ret, struct err *e);

/* The same with another compiler than unwindcomp(), for tests with one that crashes, hangs or breaks out. */
int table_worker_open_with(const struct table_worker_opts *opts, table_worker_compile *compile,
	struct table_worker **ret, struct err *e);

void table_worker_close(struct table_worker *w); /* ends the process; NULL is fine */

/*
 * For poll(2): readable if table_worker_next() has something to do: an answer
 * arrived, the worker died, or the time for a file is over. The descriptor
 * never changes.
 */
int table_worker_fd(const struct table_worker *w);

/*
 * The process ID, so that a recorder can ignore the process; changes when it is
 * replaced. 0 = there is none.
 */
pid_t table_worker_pid(const struct table_worker *w);

/*
 * Request the table of the ELF file FD, which the caller may close at once; its
 * offset is neither used nor changed. COOKIE is returned with the answer. The
 * worker gets a read-only descriptor, whatever FD is open for. -EMEDIUMTYPE if
 * it is not a regular file, -EMFILE if no more descriptors can be opened; the
 * message lacks the file's name. Never blocks: requests are queued in memory
 * while the worker is busy.
 */
int table_worker_ask(struct table_worker *w, int fd, uint64_t cookie, struct err *e);

/* Number of requests that are not answered yet. */
size_t table_worker_pending(const struct table_worker *w);

struct table_worker_answer {
	uint64_t cookie;
	int error; /* 0, or -errno with the message in `why`; a table without segments is not an error */
	const uint8_t *bytes; /* the table, not checked yet, aligned to 8; valid until the next call */
	size_t len;
	char why[256];
};

/*
 * Get the next answer, in the order of the requests. Waits up to TIMEOUT_MS (0:
 * does not wait; -1: without limit, except for the time limit for one file).
 * Returns 1 and fills RET; 0 if none arrived, none is pending or a signal was
 * caught; or -errno if no worker can be started. That is permanent after three
 * workers in a row died without a file to blame.
 */
int table_worker_next(struct table_worker *w, int timeout_ms, struct table_worker_answer *ret, struct err *e);

/* Is it certain that no more workers are started? Then nothing is pending, and requests fail. */
bool table_worker_over(const struct table_worker *w);

#endif
