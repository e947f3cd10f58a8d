/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/worker.h"
#include "base/clock.h"
#include "base/fs.h"
#include "system/worker.h"
#include "unwind/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/types.h>

#define TABLE_WORKER_TABLE_MAX (UINT64_C(1) << 30) /* bytes of one table; -EFBIG above */

#define MEMORY_DEFAULT (UINT64_C(4) << 30)
#define SECONDS_DEFAULT 20
#define WINDOW 32 /* requests sent to the worker, so that it has work while the recorder is busy */
#define DEATHS_MAX 3 /* in a row, without a file to blame */
#define GRACE_MS 100
#define WHO "the process that compiles unwind tables"

/*
 * A request is two descriptors: the ELF file and an empty memfd for its table.
 * The reply is the table's length.
 */
struct request {
	struct request *next;
	uint64_t cookie;
	int file;
	int table; /* memfd; -1 until the request is sent */
};

struct table_worker {
	struct table_worker_opts opts;
	table_worker_compile *compile;
	struct sandbox_opts box;
	struct worker *worker;
	int epoll_fd, timer_fd;
	unsigned int deaths; /* in a row, without a file to blame */
	struct err end; /* code: why no more workers are started */

	struct request *head, **tail; /* in the order of the requests */
	struct request *unsent; /* first request that is not sent yet */
	size_t pending, in_flight;
	uint64_t deadline_ns; /* for the head, CLOCK_MONOTONIC; 0 = not started */

	uint8_t *table; /* of the last answer */
	uint64_t made_len; /* in the worker process: length of its last table */
};

/* Start the time limit for the file at the head, or turn it off if nothing is in flight. */
static void set_clock(struct table_worker *w)
{
	struct itimerspec at = { 0 };

	w->deadline_ns = w->in_flight ? now_ns() + w->opts.seconds * UINT64_C(1000000000) : 0;
	at.it_value.tv_sec = w->in_flight ? (time_t)w->opts.seconds : 0;
	timerfd_settime(w->timer_fd, 0, &at, NULL);
}

static void request_unsend(struct request *r)
{
	if (r->table >= 0)
		close(r->table);
	r->table = -1;
}

static void request_free(struct request *r)
{
	request_unsend(r);
	close(r->file);
	free(r);
}

static void drop_head(struct table_worker *w)
{
	struct request *r = w->head;

	if (r == w->unsent)
		w->unsent = r->next;
	else
		w->in_flight--;
	w->head = r->next;
	if (!w->head)
		w->tail = &w->head;
	w->pending--;
	request_free(r);
}

/* --- the worker process --- */

/* As worker_fn. */
static int serve(void *ctx, const void *request, size_t len, int *fds, struct worker_answer *a)
{
	struct table_worker *w = ctx;
	_cleanup_free_ uint8_t *bytes = NULL;
	int file = fds[0], rc;

	(void)request, (void)len;
	if (fds[1] < 0)
		return -EPERM;
	fds[0] = -1; /* compile() closes it */
	rc = w->compile(file, &bytes, &len, &a->err);
	if (rc)
		return rc;
	rc = writefd_at(fds[1], bytes, len, 0);
	if (rc)
		return err_sys(&a->err, rc, "cannot hand over a table of %zu bytes", len);
	w->made_len = len;
	a->bytes = &w->made_len;
	a->len = sizeof(w->made_len);
	return 0;
}

static int run(void *arg, int sock)
{
	worker_serve(sock, NULL, 0, serve, arg);
	return 0;
}

static void stop(struct table_worker *w, unsigned int grace_ms, struct worker_end *end)
{
	/* a copy of the socket in another child would keep it in the epoll set */
	if (w->worker && worker_fd(w->worker) >= 0)
		epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, worker_fd(w->worker), NULL);
	if (w->worker)
		worker_stop(w->worker, grace_ms, end);
}

static int start(struct table_worker *w, struct err *e)
{
	const struct worker_opts opts = { .who = WHO, .sandbox = &w->box, .run = run, .arg = w };
	struct epoll_event ev = { .events = EPOLLIN };
	int rc = w->worker ? worker_restart(w->worker, e) : worker_start(&opts, &w->worker, e);

	if (!rc && epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, worker_fd(w->worker), &ev) != 0) {
		rc = err_sys(e, -errno, "cannot wait for " WHO);
		worker_stop(w->worker, 0, NULL);
	}
	return rc;
}

/* --- requests --- */

/* Requests that were sent go to the next worker, with new memfds. */
static void unsend_all(struct table_worker *w)
{
	for (struct request *r = w->head; r != w->unsent; r = r->next)
		request_unsend(r);
	w->unsent = w->head;
	w->in_flight = 0;
	set_clock(w);
}

/* Answer the head with an error. */
static int answer_error(struct table_worker *w, int code, const char *why, struct table_worker_answer *ret)
{
	ret->cookie = w->head->cookie;
	ret->error = code;
	snprintf(ret->why, sizeof(ret->why), "%.*s", (int)sizeof(ret->why) - 1, why);
	drop_head(w);
	set_clock(w);
	return 1;
}

/*
 * Replace a worker that cannot be used any more. If it was at a file, answers
 * it with CODE and returns 1. WHY NULL: the message is how the worker ended.
 * Returns 0 if there is no such file, or -errno.
 */
static int replace(
	struct table_worker *w, int code, const char *why, struct table_worker_answer *ret, struct err *e)
{
	bool blamed = worker_has_begun(w->worker) && w->in_flight;
	struct worker_end end;
	int rc;

	stop(w, why ? 0 : GRACE_MS, &end);
	why = why ? why : end.why;
	unsend_all(w);
	w->deaths = blamed ? 0 : w->deaths + 1;
	if (w->deaths >= DEATHS_MAX) {
		while (w->head)
			drop_head(w);
		return err_set(&w->end, -EIO, "no process that compiles unwind tables stays alive: %s", why);
	}
	rc = start(w, blamed ? NULL : e);
	return blamed ? answer_error(w, code, why, ret) : rc;
}

/* Send request R to the worker. */
static int send_request(struct table_worker *w, struct request *r)
{
	int fds[2] = { r->file, worker_memfd("unwind-table") }, rc;

	r->table = fds[1];
	if (r->table < 0)
		return r->table;
	rc = worker_send(w->worker, NULL, 0, fds, 2);
	if (rc) {
		request_unsend(r);
		return rc;
	}
	w->unsent = r->next;
	if (w->in_flight++ == 0)
		set_clock(w);
	return 0;
}

/*
 * Send as many requests as fit. One that is refused now may fit when less is in
 * flight: an error only if nothing is.
 */
static int send_requests(struct table_worker *w)
{
	int rc = 0;

	while (!rc && worker_fd(w->worker) >= 0 && w->unsent && w->in_flight < WINDOW)
		rc = send_request(w, w->unsent);
	/* EPIPE: the worker died, which reading will report */
	return w->in_flight || rc == -EPIPE || rc == -EAGAIN ? 0 : rc;
}

/*
 * Copy the table of LEN bytes out of the head's memfd, so that nothing the
 * worker does with it later has an effect. (Sealing the memfd would work too,
 * but then the kernel drains the page lists of all CPUs, which takes tens of
 * milliseconds.)
 */
static int take_table(struct table_worker *w, uint64_t len, struct table_worker_answer *ret)
{
	int fd = w->head->table, rc;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!len || len > TABLE_WORKER_TABLE_MAX || (uint64_t)st.st_size != len)
		return -EPROTO;
	w->table = malloc(len);
	if (!w->table)
		return -ENOMEM;
	rc = readfd_at(fd, w->table, len, 0);
	if (rc)
		return rc;
	ret->bytes = w->table;
	ret->len = len;
	return 0;
}

static void release_table(struct table_worker *w)
{
	free(w->table);
	w->table = NULL;
}

/* Handle a reply to the head. Returns 1 if RET is filled, 0 or -errno as replace(). */
static int take_reply(struct table_worker *w, const struct worker_reply *r, uint64_t table_len,
	struct table_worker_answer *ret, struct err *e)
{
	int rc;

	w->deaths = 0;
	if (r->error)
		return answer_error(w, r->error, r->why, ret);
	rc = r->len == sizeof(table_len) ? take_table(w, table_len, ret) : -EPROTO;
	if (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE)
		return answer_error(w, rc, "no memory for its table", ret);
	if (rc)
		return replace(w, -EIO, WHO " did not hand over a table", ret, e);
	ret->cookie = w->head->cookie;
	drop_head(w);
	set_clock(w);
	return 1;
}

enum { AGAIN = 0, ANSWER = 1, WAIT = 2 };

/* One step without waiting. ANSWER: RET is filled. Or -errno. */
static int step(struct table_worker *w, struct table_worker_answer *ret, struct err *e)
{
	struct worker_reply r;
	uint64_t len = 0;
	int rc = worker_fd(w->worker) >= 0 ? 0 : start(w, e);

	if (rc)
		return rc;
	rc = send_requests(w);
	if (rc)
		return answer_error(w, rc, "cannot be handed to a compiler", ret);
	rc = worker_receive(w->worker, 0, &len, sizeof(len), false, &r);
	if (rc > 0)
		return take_reply(w, &r, len, ret, e);
	if (rc == -EPIPE || rc == -EPROTO)
		return replace(w, -EIO, rc == -EPROTO ? WHO " sent a malformed reply" : NULL, ret, e);
	if (rc)
		return err_sys(e, rc, "cannot read what " WHO " replies");
	if (!w->deadline_ns || now_ns() < w->deadline_ns)
		return WAIT;
	return replace(w, -ETIMEDOUT, "it took too long to compile", ret, e);
}

/* Wait. Returns false if the time is over or a signal was caught. The set also has the timer for a file. */
static bool wait_for(const struct table_worker *w, int timeout_ms, uint64_t until_ns)
{
	struct pollfd p = { .fd = w->epoll_fd, .events = POLLIN };
	uint64_t now = now_ns();
	int ms = -1;

	if (timeout_ms >= 0) {
		if (now >= until_ns)
			return false;
		ms = (int)((until_ns - now + 999999) / 1000000);
	}
	return poll(&p, 1, ms) > 0;
}

int table_worker_next(struct table_worker *w, int timeout_ms, struct table_worker_answer *ret, struct err *e)
{
	uint64_t until_ns = now_ns() + (timeout_ms > 0 ? (uint64_t)timeout_ms * 1000000 : 0);

	release_table(w);
	*ret = (struct table_worker_answer){ 0 };
	for (;;) {
		int rc;

		if (w->end.code) {
			if (e)
				*e = w->end;
			return w->end.code;
		}
		rc = step(w, ret, e);
		if (rc == ANSWER || (rc < 0 && !w->end.code))
			return rc;
		if (rc == WAIT && (!w->pending || !wait_for(w, timeout_ms, until_ns)))
			return 0;
	}
}

/* Open a read-only descriptor for the worker, which could change the file otherwise. */
static int keep_file(int fd, struct err *e)
{
	struct stat st;
	char path[32];
	int flags = fcntl(fd, F_GETFL), kept;

	if (flags < 0 || fstat(fd, &st) != 0)
		return err_sys(e, -errno, "cannot be examined");
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EMEDIUMTYPE, "is not a regular file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	kept = (flags & O_ACCMODE) == O_RDONLY && !(flags & O_PATH) ? fcntl(fd, F_DUPFD_CLOEXEC, 3)
								    : open(path, O_RDONLY | O_CLOEXEC);
	if (kept >= 0)
		return kept;
	kept = err_sys(e, -errno, "cannot be kept open for its turn");
	if (kept == -EMFILE)
		err_hint(e, "raise the limit of open files (ulimit -n)");
	return kept;
}

int table_worker_ask(struct table_worker *w, int fd, uint64_t cookie, struct err *e)
{
	_cleanup_free_ struct request *r = NULL;

	if (w->end.code) {
		if (e)
			*e = w->end;
		return w->end.code;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_nomem(e, "a request");
	r->file = keep_file(fd, e);
	if (r->file < 0)
		return r->file;
	r->cookie = cookie;
	r->table = -1;
	*w->tail = r;
	w->tail = &r->next;
	if (!w->unsent)
		w->unsent = r;
	w->pending++;
	TAKE_PTR(r);
	send_requests(w); /* what fails now is retried and reported by table_worker_next() */
	return 0;
}

int table_worker_open_with(const struct table_worker_opts *opts, table_worker_compile *compile,
	struct table_worker **ret, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct table_worker *w = calloc(1, sizeof(*w));
	int rc = 0;

	if (!w)
		return err_nomem(e, "a compiler of unwind tables");
	if (opts)
		w->opts = *opts;
	w->opts.memory_bytes = w->opts.memory_bytes ? w->opts.memory_bytes : MEMORY_DEFAULT;
	w->opts.seconds = w->opts.seconds ? w->opts.seconds : SECONDS_DEFAULT;
	w->compile = compile;
	w->box = (struct sandbox_opts){ .comm = "unwind-tables",
		.memory_bytes = w->opts.memory_bytes,
		.file_bytes = TABLE_WORKER_TABLE_MAX };
	w->tail = &w->head;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->epoll_fd < 0 || w->timer_fd < 0 ||
		epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->timer_fd, &ev) != 0)
		rc = err_sys(e, -errno, "cannot wait for " WHO);
	rc = rc ? rc : start(w, e);
	if (rc) {
		table_worker_close(w);
		return rc;
	}
	*ret = w;
	return 0;
}

int table_worker_open(const struct table_worker_opts *opts, struct table_worker **ret, struct err *e)
{
	return table_worker_open_with(opts, unwindcomp_fd, ret, e);
}

void table_worker_close(struct table_worker *w)
{
	if (!w)
		return;
	stop(w, 0, NULL);
	worker_free(w->worker);
	release_table(w);
	while (w->head)
		drop_head(w);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	if (w->timer_fd >= 0)
		close(w->timer_fd);
	free(w);
}

bool table_worker_over(const struct table_worker *w)
{
	return w->end.code != 0;
}

int table_worker_fd(const struct table_worker *w)
{
	return w->epoll_fd;
}

pid_t table_worker_pid(const struct table_worker *w)
{
	return (pid_t)worker_pid(w->worker);
}

size_t table_worker_pending(const struct table_worker *w)
{
	return w->pending;
}
