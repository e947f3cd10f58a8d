/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker - a child process with one task, and the messages to and from it.
 *
 * What a tool has privileges for and what it parses are apart: bytes that
 * somebody else wrote are read by a process that has given everything up, and a
 * privilege is kept by a process that only does what a request of a fixed form
 * says. Each such process is a client of this module: a type of request, a
 * type of reply and a function. Starting it, its sandbox (system/sandbox.h), messages,
 * descriptors, deadlines, and the words for how it ended are here.
 *
 * A message is one of a SOCK_SEQPACKET socket: a number, an error and the
 * client's bytes. A worker that serves answers requests one by one, in their
 * order; one that reports sends what it has unasked. Nothing that a worker sends
 * is believed: what is no reply to the next request is a failure of the worker.
 */
#ifndef STACKTOOLS_SYSTEM_WORKER_H
#define STACKTOOLS_SYSTEM_WORKER_H

#include "base/err.h"
#include "system/sandbox.h"

#include <sys/resource.h>
#include <sys/types.h>

#define WORKER_FDS 2 /* descriptors with a request, at most; with a reply there is one */

/* --- in the worker --- */

/* What goes with the answer to a request. */
struct worker_answer {
	const void *bytes;
	size_t len;
	int fd; /* -1 = none; closed afterwards */
	struct err err; /* the message of an error; an empty one is fine */
};

/*
 * Serve one request of LEN bytes. 0 or -errno, which is the reply's error; then
 * no bytes go with it. FDS: what came with the request or -1; closed afterwards unless
 * set to -1.
 */
typedef int worker_fn(void *ctx, const void *request, size_t len, int *fds, struct worker_answer *a);

/*
 * Serve requests from SOCK until the other side has gone. REQUEST has room
 * for SIZE bytes: longer ones are answered with -EPERM, as are all with FN NULL. Takes no memory.
 */
void worker_serve(int sock, void *request, size_t size, worker_fn *fn, void *ctx);

/*
 * Send what nobody asked for; FD -1 = none. WAIT: until there is room. 0,
 * -EAGAIN, or -EPIPE when nobody listens any more.
 */
int worker_report(int sock, const void *bytes, size_t len, int fd, bool wait);

/* --- its parent --- */

struct worker_opts {
	const char *who; /* begins messages: "the process that opens files"; lives as long as the worker */
	/*
	 * keep_fd, parent and filter are filled in. NULL = it keeps what the
	 * caller has, but for the standard streams, which are /dev/null then.
	 */
	const struct sandbox_opts *sandbox;
	bool keep_stdio; /* those too */
	bool reports; /* it sends messages unasked, and serves no requests */
	bool hurry; /* somebody waits for each reply: worker_hurry() */
	int (*prepare)(
		void *arg, struct err *e); /* in the child, before it enters the sandbox; NULL = nothing */
	int (*run)(void *arg, int sock); /* in the child, then; its exit status */
	void *arg; /* the child has a copy of what it points to */
};

struct worker;

/*
 * Fork it. On success *RET is the caller's. *O is copied, what it points to
 * has to live until worker_restart() is not called any more. Calls but
 * worker_call(), worker_pid() and worker_stats() are for one thread.
 */
int worker_start(const struct worker_opts *o, struct worker **ret, struct err *e);
int worker_restart(struct worker *w, struct err *e); /* a new process, after worker_stop() */
void worker_free(struct worker *w); /* ends it; NULL is fine */

/* Wait, at most ten seconds, until it is in its sandbox. It is stopped where that failed. W NULL: 0. */
int worker_ready(struct worker *w, struct err *e);

uint32_t worker_pid(const struct worker *w); /* 0 = none, or it has ended, or W is NULL */
bool worker_has_begun(
	const struct worker *w); /* Has worker_receive() or worker_ready() heard that it is in its sandbox? */

/* For poll(2): POLLIN when a message is there, POLLHUP when it has ended. -1 after worker_stop(). */
int worker_fd(const struct worker *w);

/*
 * Send a request, with N descriptors that stay the caller's. Never waits:
 * -EAGAIN where the socket is full; -EPIPE where it has ended, which worker_receive() says too.
 */
int worker_send(struct worker *w, const void *request, size_t len, const int *fds, size_t n);

struct worker_reply {
	int error; /* 0 or -errno of the worker's function */
	char why[256]; /* its message; "" = none */
	size_t len; /* bytes */
	int fd; /* -1 = none; the caller's */
};

/*
 * The next reply (or report) into the SIZE bytes at BYTES, waiting up to
 * TIMEOUT_MS for one; -1 = as long as it takes. 1; 0 when none came; -EPIPE
 * when it has ended, -EPROTO for what is no reply: nothing is left but worker_stop().
 * WANT_FD: descriptors are taken, else the kernel closes them.
 */
int worker_receive(
	struct worker *w, int timeout_ms, void *bytes, size_t size, bool want_fd, struct worker_reply *ret);

/*
 * Send a request, and wait up to ten seconds for its reply. The length of
 * the reply, or its error with its message; -ENOTCONN where W is NULL or has
 * ended. One that does not reply, or not properly, is stopped. FD NULL: no
 * descriptor is expected. For any thread.
 */
ssize_t worker_call(
	struct worker *w, const void *request, size_t len, void *reply, size_t size, int *fd, struct err *e);

struct worker_stats {
	uint64_t requested; /* calls that were replied to */
	uint64_t lost; /* calls without a reply, as it had ended */
	char why[192]; /* how it ended; "" = it has not */
};

void worker_stats(struct worker *w, struct worker_stats *ret); /* W NULL: all zero */

/* How a process ended. */
struct worker_end {
	int status; /* of wait(2); -1 = not known */
	struct rusage usage;
	char why[192]; /* "the process that opens files was killed by SIGSEGV" */
};

/*
 * End it: its socket is closed, it has GRACE_MS to end by itself, then it is
 * killed. Takes a second more at most: one that the kernel holds (FUSE) is not
 * waited for. RET may be NULL. Harmless where there is none.
 */
void worker_stop(struct worker *w, unsigned int grace_ms, struct worker_end *ret);

/*
 * Wait for one that works without messages to end by itself, SECONDS at most;
 * then it is killed. 0 when its status is 0; -ETIMEDOUT, else -EIO.
 */
int worker_wait(struct worker *w, unsigned int seconds, struct err *e);

/*
 * The exit status of FN(ARG), run in a child process of its own, which has
 * what the caller has and leaves no core; -signal when it was killed; 0 where there is no child.
 */
int worker_try(int (*fn)(void *arg), void *arg);

/*
 * Have this thread run as soon as it wakes up, where that is allowed: with a
 * short slice (Linux 6.12) and a better niceness (everywhere). What new
 * processes map has to be read before they wait.
 */
void worker_hurry(void);

/*
 * Large results lie in a memfd, which a sandboxed process can write at an
 * offset. A descriptor, or -errno.
 */
int worker_memfd(const char *name);

#endif
