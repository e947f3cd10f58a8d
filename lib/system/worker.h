/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker - a child process with one task, and the messages to and from it.
 *
 * Privileges and parsing are kept apart: a process that has given up everything
 * reads the untrusted input, and a process that keeps a privilege only serves
 * requests of a fixed form. Each such process is a client of this module: a
 * request type, a reply type and a function. This module starts the process,
 * sandboxes it (system/sandbox.h), transfers messages and descriptors, enforces
 * deadlines and describes how the process ended.
 *
 * A message is one record of a SOCK_SEQPACKET socket: a number, an error and the
 * client's bytes. A worker that serves answers requests one by one, in order; a
 * worker that reports sends messages without a request. Messages of a worker are
 * untrusted input: anything but the reply to the next request is a failure of
 * the worker.
 */
#ifndef STACKTOOLS_SYSTEM_WORKER_H
#define STACKTOOLS_SYSTEM_WORKER_H

#include "base/err.h"
#include "system/sandbox.h"

#include <sys/resource.h>
#include <sys/types.h>

#define WORKER_FDS 2 /* descriptors in a request, at most; a reply has at most one */

/* --- in the worker --- */

/* The content of a reply. */
struct worker_answer {
	const void *bytes;
	size_t len;
	int fd; /* -1 = none; closed afterwards */
	struct err err; /* the message of an error; may be empty */
};

/*
 * Serve one request of LEN bytes. 0, or -errno, which becomes the error of the
 * reply; the reply then has no bytes. FDS: the descriptors of the request, or -1;
 * closed afterwards unless set to -1.
 */
typedef int worker_fn(void *ctx, const void *request, size_t len, int *fds, struct worker_answer *a);

/*
 * Serve requests from SOCK until the other side closes it. REQUEST has room for
 * SIZE bytes: a longer request is answered with -EPERM, as are all if FN is NULL.
 * Allocates no memory.
 */
void worker_serve(int sock, void *request, size_t size, worker_fn *fn, void *ctx);

/*
 * Send a message without a request; FD -1 = none. WAIT: block until there is
 * room. 0, -EAGAIN if there is no room, -EPIPE if the other side has closed.
 */
int worker_report(int sock, const void *bytes, size_t len, int fd, bool wait);

/* --- the parent --- */

struct worker_opts {
	const char *who; /* begins messages: "the process that opens files"; lives as long as the worker */
	/*
	 * keep_fd, parent and filter are filled in by this module. NULL = no
	 * sandbox: the child keeps everything that the caller has, except the
	 * standard streams, which become /dev/null.
	 */
	const struct sandbox_opts *sandbox;
	bool keep_stdio; /* without a sandbox: keep the standard streams too */
	bool exposed; /* without a sandbox: the caller may end it after it has become its private user */
	bool reports; /* it sends messages without requests, and serves none */
	bool hurry; /* replies are urgent: the child calls worker_hurry() */
	int (*prepare)(
		void *arg, struct err *e); /* runs in the child before it enters the sandbox; NULL = none */
	int (*run)(void *arg, int sock); /* runs in the child afterwards; returns its exit status */
	void *arg; /* the child has a copy of what it points to */
};

struct worker;

/*
 * Fork a worker. On success the caller owns *RET. *O is copied; what it points to
 * must stay valid until the last worker_restart(). Use all calls but
 * worker_call(), worker_pid() and worker_stats() from one thread only.
 */
int worker_start(const struct worker_opts *o, struct worker **ret, struct err *e);
int worker_restart(struct worker *w, struct err *e); /* a new process, after worker_stop() */
void worker_free(struct worker *w); /* ends it; NULL is fine */

/*
 * Wait at most ten seconds until it is in its sandbox. If that fails, it is
 * stopped. W NULL: 0. This and all other waits for a worker end early if the user
 * wants an end (system/interrupt.h).
 */
int worker_ready(struct worker *w, struct err *e);

uint32_t worker_pid(const struct worker *w); /* 0 = none, or it was stopped, or W is NULL */
bool worker_has_begun(
	const struct worker *w); /* whether worker_receive() or worker_ready() saw it enter its sandbox */

/* For poll(2): POLLIN if there is a message, POLLHUP if it has ended. -1 after worker_stop(). */
int worker_fd(const struct worker *w);

/*
 * Send a request with N descriptors, which the caller still owns. Never blocks:
 * -EAGAIN if the socket is full; -EPIPE if the worker has ended, which
 * worker_receive() reports too.
 */
int worker_send(struct worker *w, const void *request, size_t len, const int *fds, size_t n);

struct worker_reply {
	int error; /* 0 or -errno of the worker's function */
	char why[256]; /* its message; "" = none */
	size_t len; /* bytes */
	int fd; /* -1 = none; the caller owns it */
};

/*
 * Receive the next reply (or report) into the SIZE bytes at BYTES, waiting up to
 * TIMEOUT_MS for it; -1 = without limit. 1; 0 if none arrived; -EPIPE if the
 * worker has ended, -EPROTO for a malformed reply: then only worker_stop() is
 * left. WANT_FD: accept descriptors; otherwise the kernel closes them.
 */
int worker_receive(
	struct worker *w, int timeout_ms, void *bytes, size_t size, bool want_fd, struct worker_reply *ret);

/*
 * Send a request and wait up to ten seconds for its reply, or as worker_limit() says. Returns the length of
 * the reply, or its error with its message; -ENOTCONN if W is NULL or has ended.
 * A worker that does not reply, or sends a malformed reply, is stopped. FD NULL:
 * no descriptor is expected. Thread-safe.
 */
ssize_t worker_call(
	struct worker *w, const void *request, size_t len, void *reply, size_t size, int *fd, struct err *e);

/* From now on no call lasts beyond END_NS: the one that would stops the worker. */
void worker_limit(struct worker *w, uint64_t end_ns);

struct worker_stats {
	uint64_t requested; /* calls with a reply */
	uint64_t lost; /* calls without a valid reply */
	char why[192]; /* how it ended; "" = it has not */
};

void worker_stats(struct worker *w, struct worker_stats *ret); /* W NULL: all zero */

/* How a process ended. */
struct worker_end {
	int status; /* of wait(2); -1 = unknown */
	struct rusage usage;
	char why[192]; /* "the process that opens files was killed by SIGSEGV" */
};

/*
 * Stop the worker: close its socket, give it GRACE_MS to exit, then kill it.
 * Takes at most one second longer: does not wait for a process that is stuck in
 * the kernel (FUSE). RET may be NULL. Harmless if there is no process.
 */
void worker_stop(struct worker *w, unsigned int grace_ms, struct worker_end *ret);

/*
 * Wait at most SECONDS for a worker without messages to exit, then kill it. 0 if
 * its exit status is 0; -ETIMEDOUT if it was killed, else -EIO.
 */
int worker_wait(struct worker *w, unsigned int seconds, struct err *e);

/*
 * Run FN(ARG) in a child process that keeps everything the caller has and leaves
 * no core. Returns its exit status; -signal if it was killed; 0 if there is no
 * child.
 */
int worker_try(int (*fn)(void *arg), void *arg);

/*
 * For a process that is about to lose the right to open its /proc files: workers
 * that it starts later are the first to be killed when memory runs out, as those
 * before. They get that by inheritance: the process itself has their
 * oom_score_adj while it forks.
 */
void worker_first_without_memory(void);

/*
 * Make this thread run as soon as it wakes up: with a short time slice (Linux
 * 6.12) and, which takes CAP_SYS_NICE, a lower nice value (every kernel). The
 * mappings of new processes must be read before these block, and samples of /proc
 * be taken in time. Children inherit both.
 */
void worker_hurry(void);

/*
 * A memfd for large results, which a sandboxed process can write at an offset. A
 * descriptor, or -errno.
 */
int worker_memfd(const char *name);

#endif
