/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/worker.h"
#include "base/clock.h"
#include "system/sandbox.h"
#include "unwind/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/wait.h>

struct tabwire_request {
	uint64_t number; /* from 1 */
	int file, table; /* descriptors */
};

/* Room for two descriptors, aligned as the macros want it. */
union control {
	char bytes[CMSG_SPACE(2 * sizeof(int))];
	struct cmsghdr align;
};

static int send_one(int sock, const struct msghdr *m, int flags)
{
	ssize_t n;

	do
		n = sendmsg(sock, m, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* Bytes, 0 at the end, -errno. ECONNRESET comes before what is still to be read. */
static ssize_t receive_one(int sock, struct msghdr *m, int flags)
{
	ssize_t n;

	do
		n = recvmsg(sock, m, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	return n < 0 ? -errno : n;
}

/* The recorder's side; neither waits. 0 or -errno: -EAGAIN, -EPIPE, ... */
static int tabwire_ask(int sock, const struct tabwire_request *r)
{
	uint64_t number = r->number;
	int fds[2] = { r->file, r->table };
	union control c = { { 0 } };
	struct iovec iov = { &number, sizeof(number) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.bytes, .msg_controllen = sizeof(c.bytes)
	};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(h), fds, sizeof(fds));
	return send_one(sock, &m, MSG_DONTWAIT);
}

/* 1, 0 when the other side is gone, -EAGAIN, or -EPROTO for what is no answer. */
/* No room for descriptors: any that came with it are closed by the kernel. */
static int tabwire_answered(int sock, struct tabwire_answer *ret)
{
	struct iovec iov = { ret, sizeof(*ret) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = receive_one(sock, &m, MSG_DONTWAIT);

	if (n <= 0)
		return (int)n;
	if (n != sizeof(*ret) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || ret->error > 0 ||
		ret->error < -4095)
		return -EPROTO;
	ret->why[sizeof(ret->why) - 1] = '\0';
	return 1;
}

/* The compiling side; both wait. 1 with two descriptors for the caller to close, 0 at the end, -errno. */
static int tabwire_next(int sock, struct tabwire_request *ret)
{
	union control c = { { 0 } };
	struct iovec iov = { &ret->number, sizeof(ret->number) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.bytes, .msg_controllen = sizeof(c.bytes)
	};
	ssize_t n = receive_one(sock, &m, 0);
	struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	int fds[2];

	if (n <= 0)
		return (int)n;
	if (n != sizeof(ret->number) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || !h ||
		h->cmsg_type != SCM_RIGHTS || h->cmsg_len != CMSG_LEN(sizeof(fds)))
		return -EPROTO;
	memcpy(fds, CMSG_DATA(h), sizeof(fds));
	ret->file = fds[0];
	ret->table = fds[1];
	return 1;
}

int tabwire_answer(int sock, const struct tabwire_answer *a)
{
	/* sendmsg(2) only reads it */
	struct iovec iov = { (void *)(uintptr_t)a, sizeof(*a) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	return send_one(sock, &m, 0);
}

static int store(int fd, const uint8_t *bytes, size_t len, struct err *e)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pwrite(fd, bytes + done, len - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_sys(
				e, n < 0 ? -errno : -EIO, "cannot hand over a table of %zu bytes", len);
		done += (size_t)n;
	}
	return 0;
}

static void serve_one(int sock, const struct tabwire_request *r, tabserve_compile *compile)
{
	struct tabwire_answer a = { .number = r->number };
	_cleanup_free_ uint8_t *bytes = NULL;
	struct err e = { 0 };
	size_t len = 0;

	a.error = compile(r->file, &bytes, &len, &e);
	if (!a.error)
		a.error = store(r->table, bytes, len, &e);
	if (!a.error)
		a.len = len;
	else
		snprintf(a.why, sizeof(a.why), "%.*s", (int)sizeof(a.why) - 1, e.msg);
	close(r->table);
	tabwire_answer(sock, &a);
}

/* Say that it is ready, then answer requests (tabwire_*()) from SOCK until the other side closes it. */
static void tabserve(int sock, tabserve_compile *compile)
{
	const struct tabwire_answer ready = { .number = 0 };
	struct tabwire_request r;

	if (tabwire_answer(sock, &ready) != 0)
		return;
	while (tabwire_next(sock, &r) > 0)
		serve_one(sock, &r, compile);
}

/*
 * tabchild - the process that compiles unwind tables, as its parent sees it:
 * begun, talked to over a socket, ended.
 */

struct tabchild {
	pid_t pid; /* 0 = none */
	int sock; /* for tabwire_*(), -1 = none */
};

struct tabchild_opts {
	uint64_t memory_bytes, table_bytes; /* as memory_bytes and file_bytes of system/sandbox.h */
	tabserve_compile *compile;
};

#define REAP_MS 1000

__attribute__((noreturn)) static void work(const void *arg, int sock, pid_t parent)
{
	const struct tabchild_opts *o = arg;
	const struct sandbox_opts box = { .keep_fd = sock,
		.parent = parent,
		.comm = "unwind-tables",
		.memory_bytes = o->memory_bytes,
		.file_bytes = o->table_bytes };
	struct tabwire_answer no = { .number = 0 };
	struct err e = { 0 };

	no.error = sandbox_enter(&box, &e);
	if (!no.error) {
		tabserve(SANDBOX_FD, o->compile);
		_exit(0);
	}
	snprintf(no.why, sizeof(no.why), "%.*s", (int)sizeof(no.why) - 1, e.msg);
	tabwire_answer(SANDBOX_FD, &no);
	_exit(1);
}

/* Fork it: it enters its sandbox and answers requests. 0, or -errno with *C as if never begun. */
static int tabchild_start(const struct tabchild_opts *o, struct tabchild *c, struct err *e)
{
	pid_t pid;
	int sock;

	*c = (struct tabchild){ .sock = -1 };
	pid = sandbox_start("compiles unwind tables", work, o, &sock, e);
	if (pid < 0)
		return pid;
	*c = (struct tabchild){ .pid = pid, .sock = sock };
	return 0;
}

/* Its wait status, -1 when there is none. */
static int reap(pid_t pid)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int status = -1;

	while (fd >= 0 && poll(&p, 1, REAP_MS) < 0 && errno == EINTR)
		;
	return waitpid(pid, &status, fd >= 0 ? WNOHANG : 0) == pid ? status : -1;
}

static void tell_end(int status, char *why, size_t cap)
{
	if (status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		snprintf(why, cap, "the compiling process was stopped at a system call that it may not make");
	else if (status != -1 && WIFSIGNALED(status))
		snprintf(why, cap, "the compiling process was ended by a signal: %s",
			strsignal(WTERMSIG(status)));
	else if (status != -1 && WIFEXITED(status))
		snprintf(why, cap, "the compiling process ended with status %d", WEXITSTATUS(status));
	else
		snprintf(why, cap, "the compiling process ended");
}

/*
 * End it whatever it does; harmless where there is none. WHY (CAP bytes, may
 * be NULL) tells how it had ended if it had. Takes a second at most: one that
 * waits for a file system (FUSE) dies when that answers, and is not waited for.
 */
static void tabchild_stop(struct tabchild *c, char *why, size_t cap)
{
	int status = -1;

	if (c->sock >= 0)
		close(c->sock);
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		status = reap(c->pid);
	}
	*c = (struct tabchild){ .sock = -1 };
	if (why)
		tell_end(status, why, cap);
}

#define TABWORKER_TABLE_MAX (UINT64_C(1) << 30) /* bytes of one table; more is answered with -EFBIG */

#define MEMORY_DEFAULT (UINT64_C(4) << 30)
#define SECONDS_DEFAULT 20
#define WINDOW 32 /* requests with the worker: it finds work while the recorder is busy elsewhere */
#define DEATHS_MAX 3 /* in a row, without a file to blame */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3 */
#endif

struct request {
	struct request *next;
	uint64_t number; /* once it was sent */
	uint64_t cookie;
	int file;
	int table; /* memfd, -1 until it was sent */
};

struct tabworker {
	struct tabworker_opts opts;
	tabserve_compile *compile;
	struct tabchild child;
	int epoll_fd, timer_fd;
	bool ready; /* it is in its sandbox */
	unsigned int deaths; /* in a row, without a file to blame */
	struct err end; /* code: why no more workers are started */

	struct request *head, **tail; /* in the order of asking */
	struct request *unsent; /* from here on */
	size_t pending, in_flight;
	uint64_t numbers; /* given away */
	uint64_t deadline_ns; /* for the head, CLOCK_MONOTONIC; 0 = not begun */

	uint8_t *table; /* of the last answer */
};

/* The worker turns to the file at the head now, or (nothing is in flight) rests. */
static void set_clock(struct tabworker *w)
{
	struct itimerspec at = { 0 };

	w->deadline_ns = w->in_flight ? now_ns() + w->opts.seconds * UINT64_C(1000000000) : 0;
	at.it_value.tv_sec = w->in_flight ? (time_t)w->opts.seconds : 0;
	timerfd_settime(w->timer_fd, 0, &at, NULL);
}

/* Not so much as a message of the kernel's log about the missing flag where it is known. */
static int new_memfd(void)
{
	int fd = memfd_create("unwind-table", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("unwind-table", MFD_CLOEXEC);
	return fd;
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

static void drop_head(struct tabworker *w)
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

static int compile_elf(int fd, uint8_t **ret, size_t *len, struct err *e)
{
	struct elffile *f = NULL;
	int rc = elffile_fd(fd, &f, e);

	if (rc)
		close(fd);
	else
		rc = unwindcomp(f, ret, len, e);
	elffile_close(f);
	return rc;
}

static void stop(struct tabworker *w, char *why, size_t cap)
{
	/* a child of the recorder may hold a copy that would keep it in the set */
	if (w->child.sock >= 0)
		epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, w->child.sock, NULL);
	tabchild_stop(&w->child, why, cap);
}

static int start(struct tabworker *w, struct err *e)
{
	const struct tabchild_opts o = { .memory_bytes = w->opts.memory_bytes,
		.table_bytes = TABWORKER_TABLE_MAX,
		.compile = w->compile };
	struct epoll_event ev = { .events = EPOLLIN };
	int rc = tabchild_start(&o, &w->child, e);

	w->ready = false;
	if (!rc && epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->child.sock, &ev) != 0) {
		rc = err_sys(e, -errno, "cannot wait for a compiler of unwind tables");
		tabchild_stop(&w->child, NULL, 0);
	}
	return rc;
}

/* What was sent goes to the next worker, with memfds that this one never saw. */
static void unsend_all(struct tabworker *w)
{
	for (struct request *r = w->head; r != w->unsent; r = r->next)
		request_unsend(r);
	w->unsent = w->head;
	w->in_flight = 0;
	set_clock(w);
}

/* The head has its answer: an error. */
static int answer_error(struct tabworker *w, int code, const char *why, struct tabworker_answer *ret)
{
	ret->cookie = w->head->cookie;
	ret->error = code;
	snprintf(ret->why, sizeof(ret->why), "%.*s", (int)sizeof(ret->why) - 1, why);
	drop_head(w);
	set_clock(w);
	return 1;
}

/*
 * The worker is of no more use. CODE is what the file that it was at is
 * answered with (1 is returned then); WHY NULL is how it ended. 0 when there
 * is no such file, or -errno.
 */
static int replace(
	struct tabworker *w, int code, const char *why, struct tabworker_answer *ret, struct err *e)
{
	bool blamed = w->ready && w->in_flight;
	char text[256];
	int rc;

	stop(w, text, sizeof(text));
	why = why ? why : text;
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

/* Let the worker have request R. */
static int send_request(struct tabworker *w, struct request *r)
{
	struct tabwire_request msg = { .number = w->numbers + 1, .file = r->file, .table = -1 };
	int rc;

	r->table = msg.table = new_memfd();
	if (r->table < 0)
		return -errno;
	rc = tabwire_ask(w->child.sock, &msg);
	if (rc) {
		request_unsend(r);
		return rc;
	}
	r->number = ++w->numbers;
	w->unsent = r->next;
	if (w->in_flight++ == 0)
		set_clock(w);
	return 0;
}

/* As many as it takes. What is refused now may be taken when less is in flight: an error only if nothing is.
 */
static int send_requests(struct tabworker *w)
{
	int rc = 0;

	while (!rc && w->child.sock >= 0 && w->unsent && w->in_flight < WINDOW)
		rc = send_request(w, w->unsent);
	/* EPIPE: it has died, which is told by reading */
	return w->in_flight || rc == -EPIPE || rc == -ECONNRESET || rc == -EAGAIN ? 0 : rc;
}

/*
 * Copy the table of LEN bytes out of the head's memfd: what the worker does
 * with it from now on changes nothing. (Sealing it would do as well, but the
 * kernel drains the page lists of all CPUs for that, tens of milliseconds.)
 */
static int take_table(struct tabworker *w, uint64_t len, struct tabworker_answer *ret)
{
	int fd = w->head->table;
	size_t have = 0;
	ssize_t n = 1;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!len || len > TABWORKER_TABLE_MAX || (uint64_t)st.st_size != len)
		return -EPROTO;
	w->table = malloc(len);
	if (!w->table)
		return -ENOMEM;
	while (have < len && n > 0) {
		n = pread(fd, w->table + have, len - have, (off_t)have);
		if (n > 0)
			have += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	if (have < len)
		return n < 0 ? -errno : -EPROTO;
	ret->bytes = w->table;
	ret->len = len;
	return 0;
}

static void release_table(struct tabworker *w)
{
	free(w->table);
	w->table = NULL;
}

/* A message came. 1 = RET is filled, 0 = it was none for the caller, -errno. */
static int take_answer(
	struct tabworker *w, const struct tabwire_answer *a, struct tabworker_answer *ret, struct err *e)
{
	int rc;

	if (!w->ready && a->number == 0 && a->error)
		return replace(w, -EIO, a->why, ret, e);
	if (!w->ready && a->number == 0) {
		w->ready = true;
		return 0;
	}
	if (!w->ready || !w->in_flight || a->number != w->head->number)
		return replace(
			w, -EIO, "the compiling process answered something that was not asked", ret, e);
	w->deaths = 0;
	if (a->error)
		return answer_error(w, a->error, a->why, ret);
	rc = take_table(w, a->len, ret);
	if (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE)
		return answer_error(w, rc, "no memory for its table", ret);
	if (rc)
		return replace(w, -EIO, "the compiling process did not hand over a table", ret, e);
	ret->cookie = w->head->cookie;
	drop_head(w);
	set_clock(w);
	return 1;
}

enum { AGAIN = 0, ANSWER = 1, WAIT = 2 };

/* One step without waiting. ANSWER: RET is filled. Or -errno. */
static int step(struct tabworker *w, struct tabworker_answer *ret, struct err *e)
{
	struct tabwire_answer a;
	int rc = w->child.sock >= 0 ? 0 : start(w, e);

	if (rc)
		return rc;
	rc = send_requests(w);
	if (rc)
		return answer_error(w, rc, "cannot be handed to a compiler", ret);
	rc = tabwire_answered(w->child.sock, &a);
	if (rc > 0)
		return take_answer(w, &a, ret, e);
	if (rc == 0 || rc == -EPROTO)
		return replace(w, -EIO, rc ? "the compiling process answered nonsense" : NULL, ret, e);
	if (rc != -EAGAIN)
		return err_sys(e, rc, "cannot read what a compiler of unwind tables answers");
	if (!w->deadline_ns || now_ns() < w->deadline_ns)
		return WAIT;
	return replace(w, -ETIMEDOUT, "it took too long to compile", ret, e);
}

/* False when the time is over or a signal was caught. The time for a file is in the set too. */
static bool wait_for(const struct tabworker *w, int timeout_ms, uint64_t until_ns)
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

int tabworker_next(struct tabworker *w, int timeout_ms, struct tabworker_answer *ret, struct err *e)
{
	uint64_t until_ns = now_ns() + (timeout_ms > 0 ? (uint64_t)timeout_ms * 1000000 : 0);

	release_table(w);
	*ret = (struct tabworker_answer){ 0 };
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

/* A descriptor for the worker, which could change the file if it could write to it. */
static int keep_file(int fd, struct err *e)
{
	struct stat st;
	char path[32];
	int flags = fcntl(fd, F_GETFL), kept;

	if (flags < 0 || fstat(fd, &st) != 0)
		return err_sys(e, -errno, "cannot be examined");
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EMEDIUMTYPE, "is no regular file");
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

int tabworker_ask(struct tabworker *w, int fd, uint64_t cookie, struct err *e)
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
	send_requests(w); /* what fails now is tried again, and told, by tabworker_next() */
	return 0;
}

int tabworker_open_with(
	const struct tabworker_opts *opts, tabserve_compile *compile, struct tabworker **ret, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct tabworker *w = calloc(1, sizeof(*w));
	int rc = 0;

	if (!w)
		return err_nomem(e, "a compiler of unwind tables");
	if (opts)
		w->opts = *opts;
	w->opts.memory_bytes = w->opts.memory_bytes ? w->opts.memory_bytes : MEMORY_DEFAULT;
	w->opts.seconds = w->opts.seconds ? w->opts.seconds : SECONDS_DEFAULT;
	w->compile = compile;
	w->tail = &w->head;
	w->child.sock = -1;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->epoll_fd < 0 || w->timer_fd < 0 ||
		epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->timer_fd, &ev) != 0)
		rc = err_sys(e, -errno, "cannot wait for a compiler of unwind tables");
	rc = rc ? rc : start(w, e);
	if (rc) {
		tabworker_close(w);
		return rc;
	}
	*ret = w;
	return 0;
}

int tabworker_open(const struct tabworker_opts *opts, struct tabworker **ret, struct err *e)
{
	return tabworker_open_with(opts, compile_elf, ret, e);
}

void tabworker_close(struct tabworker *w)
{
	if (!w)
		return;
	stop(w, NULL, 0);
	release_table(w);
	while (w->head)
		drop_head(w);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	if (w->timer_fd >= 0)
		close(w->timer_fd);
	free(w);
}

bool tabworker_over(const struct tabworker *w)
{
	return w->end.code != 0;
}

int tabworker_fd(const struct tabworker *w)
{
	return w->epoll_fd;
}

pid_t tabworker_pid(const struct tabworker *w)
{
	return w->child.pid;
}

size_t tabworker_pending(const struct tabworker *w)
{
	return w->pending;
}
