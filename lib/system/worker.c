/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/worker.h"
#include "base/clock.h"
#include "system/interrupt.h"
#include "system/private_user.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define REPLY_SECONDS 10 /* a file system may be slow */
#define GRACE_MS 100
#define KILLED_MS 1000
#define WHY_BYTES 256 /* size of an error text */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3 */
#endif

/* The start of every message. Number 0: the worker has begun, or a report. */
struct head {
	uint32_t number;
	int32_t error;
};

/* Room for descriptors, aligned for the CMSG macros. */
union control {
	char bytes[CMSG_SPACE(WORKER_FDS * sizeof(int))];
	struct cmsghdr align;
};

struct worker {
	struct worker_opts opts;
	pthread_mutex_t lock; /* for worker_call() and worker_stats(), and the fields below */
	int sock; /* -1 = none */
	pid_t pid; /* 0 = none */
	bool ready;
	int refusal; /* -errno: it could not begin */
	char refused[160]; /* and why */
	uint32_t sent, replied; /* numbers of the last request and reply */
	uint64_t end_ns; /* of all calls: worker_limit(); 0 = none */
	struct worker_stats stats;
};

/* --- messages --- */

static int send_one(
	int sock, const struct head *h, const void *bytes, size_t len, const int *fds, size_t n, int flags)
{
	/* sendmsg(2) only reads them */
	struct iovec v[2] = { { (void *)(uintptr_t)h, sizeof(*h) }, { (void *)(uintptr_t)bytes, len } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = ARRAY_LEN(v) };
	union control control = { { 0 } };
	ssize_t sent;

	if (n) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(n * sizeof(int)) };
		memcpy(CMSG_DATA(&control.align), fds, n * sizeof(int));
	}
	do
		sent = sendmsg(sock, &m, flags | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* Put the descriptors of M into FDS, followed by -1. */
static void take_fds(struct msghdr *m, int *fds)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	size_t n = 0;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len > CMSG_LEN(0)) {
		n = MIN((c->cmsg_len - CMSG_LEN(0)) / sizeof(int), (size_t)WORKER_FDS);
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	}
	while (n < WORKER_FDS)
		fds[n++] = -1;
}

static void close_fds(int *fds)
{
	for (size_t i = 0; i < WORKER_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/*
 * Receive one message into the N parts V; the first part is the head. FDS NULL:
 * no descriptors. *CUT: not all descriptors fitted. Returns the number of bytes
 * after the head; -EPIPE at the end; -EMSGSIZE for a message that is shorter than
 * a head or longer than V; else -errno.
 */
static ssize_t receive_one(int sock, struct iovec *v, size_t n, int *fds, int flags, bool *cut)
{
	union control control;
	struct msghdr m = { .msg_iov = v, .msg_iovlen = n };
	ssize_t len;

	if (fds) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
	}
	/* ECONNRESET is reported before the messages that are still unread */
	do
		len = recvmsg(sock, &m, flags | MSG_CMSG_CLOEXEC);
	while (len < 0 && (errno == EINTR || errno == ECONNRESET));
	if (len < 0)
		return -errno;
	if (fds)
		take_fds(&m, fds);
	if (len == 0)
		return -EPIPE;
	if (len < (ssize_t)sizeof(struct head) || m.msg_flags & MSG_TRUNC)
		return -EMSGSIZE;
	*cut = fds && m.msg_flags & MSG_CTRUNC;
	return len - (ssize_t)sizeof(struct head);
}

/* --- in the worker --- */

static int reply(int sock, uint32_t number, int error, const struct worker_answer *a)
{
	const struct head h = { .number = number, .error = error };

	if (error)
		return send_one(sock, &h, a->err.msg, strnlen(a->err.msg, WHY_BYTES - 1), NULL, 0, 0);
	return send_one(sock, &h, a->bytes, a->len, &a->fd, a->fd >= 0, 0);
}

void worker_serve(int sock, void *request, size_t size, worker_fn *fn, void *ctx)
{
	int fds[WORKER_FDS] = { -1, -1 }, rc;

	do {
		struct worker_answer a = { .fd = -1 };
		struct head h = { 0 };
		struct iovec v[] = { { &h, sizeof(h) }, { request, size } };
		bool cut = false;
		ssize_t n = receive_one(sock, v, ARRAY_LEN(v), fds, 0, &cut);

		if (n < 0 && n != -EMSGSIZE)
			return;
		rc = n < 0 || cut || !fn ? -EPERM : fn(ctx, request, (size_t)n, fds, &a);
		close_fds(fds);
		rc = reply(sock, h.number, rc, &a);
		if (a.fd >= 0)
			close(a.fd);
	} while (!rc);
}

int worker_report(int sock, const void *bytes, size_t len, int fd, bool wait)
{
	return send_one(sock, &(struct head){ 0 }, bytes, len, &fd, fd >= 0, wait ? 0 : MSG_DONTWAIT);
}

/*
 * Not _exit(2), which makes a sanitizer check for leaks with system calls that the filter denies; inline, as
 * it makes another before a call that does not return.
 */
__attribute__((noreturn, always_inline)) static inline void leave(int status)
{
	for (;;)
		syscall(SYS_exit_group, status);
}

/* Keep everything that the child or a library prints out of the caller's output. */
static void silence(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

__attribute__((noreturn)) static void be_worker(
	const struct worker_opts *o, const struct sandbox_opts *box, int sock, pid_t parent)
{
	struct worker_answer hello = { .fd = -1 };
	int rc = 0;

	if (o->hurry)
		worker_hurry();
	if (!box) {
		rc = child_begin(parent, &hello.err);
		if (!o->keep_stdio)
			silence();
	}
	if (!rc && o->prepare)
		rc = o->prepare(o->arg, &hello.err);
	if (!rc && box) {
		rc = sandbox_enter(box, &hello.err);
		sock = SANDBOX_FD;
	}
	if (reply(sock, 0, rc, &hello) != 0 || rc)
		leave(1);
	leave(o->run(o->arg, sock));
}

/* --- the parent --- */

/*
 * The oom_score_adj of this process, while it is open: a mutable global, because
 * it is the process's own. Several threads may fork.
 */
static struct {
	pthread_mutex_t lock;
	int fd; /* 0 = not open */
	char own[16]; /* its value otherwise */
} oom = { .lock = PTHREAD_MUTEX_INITIALIZER };

void worker_first_without_memory(void)
{
	int fd = oom.fd ? -1 : open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	ssize_t n = fd > 0 ? pread(fd, oom.own, sizeof(oom.own) - 1, 0) : -1;

	if (n > 0)
		oom.fd = fd;
	else if (fd >= 0)
		close(fd);
}

static void set_oom(const char *value)
{
	if (oom.fd && write(oom.fd, value, strlen(value)) < 0)
		return; /* its workers are as likely to be killed as it is */
}

/*
 * fork(2) with all signals blocked in the child: none of our handlers runs there
 * before they are reset. EXPOSED: private_user_before_fork().
 */
static pid_t fork_silently(bool exposed)
{
	struct private_user_was was = { 0 };
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_mutex_lock(&oom.lock);
	set_oom(SANDBOX_OOM);
	if (exposed)
		private_user_before_fork(&was);
	pid = fork();
	if (pid < 0)
		pid = -errno;
	if (pid == 0) {
		/* a worker may have workers of its own, and the file is its parent's */
		if (oom.fd)
			close(oom.fd);
		oom.fd = 0;
		pthread_mutex_unlock(&oom.lock);
	} else {
		if (!private_user_after_fork(&was) && pid > 0)
			abort(); /* it was possible a moment ago; this process must not go on as someone else
				  */
		set_oom(oom.own);
		pthread_mutex_unlock(&oom.lock);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	return pid;
}

static pid_t fork_worker(const struct worker_opts *o, int sock, int other, struct err *e)
{
	struct sandbox_opts box = { 0 };
	struct sock_fprog filter = { 0 };
	pid_t parent = getpid(), pid;
	int rc = 0;

	if (o->sandbox) {
		box = *o->sandbox;
		box.keep_fd = sock;
		box.parent = parent;
		rc = sandbox_filter(&box, &filter, e);
		box.filter = &filter;
	}
	if (rc)
		return rc;
	pid = fork_silently(o->sandbox || o->exposed);
	if (pid == 0) {
		if (!o->sandbox)
			close(other);
		be_worker(o, o->sandbox ? &box : NULL, sock, parent);
	}
	syscall_filter_free(&filter);
	return pid < 0 ? err_sys(e, pid, "cannot start %s", o->who) : pid;
}

int worker_restart(struct worker *w, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return err_sys(e, -errno, "cannot start %s", w->opts.who);
	/* reports should not wait for their reader */
	if (w->opts.reports)
		setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &(int){ 1 << 20 }, sizeof(int));
	pid = fork_worker(&w->opts, pair[1], pair[0], e);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return pid;
	}
	w->sock = pair[0];
	w->pid = pid;
	w->ready = false;
	w->refusal = 0;
	w->sent = w->replied = 0;
	return 0;
}

int worker_start(const struct worker_opts *o, struct worker **ret, struct err *e)
{
	struct worker *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return err_nomem(e, o->who);
	w->opts = *o;
	w->sock = -1;
	pthread_mutex_init(&w->lock, NULL);
	rc = worker_restart(w, e);
	if (rc)
		worker_free(w);
	else
		*ret = w;
	return rc;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	worker_stop(w, GRACE_MS, NULL);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

uint32_t worker_pid(const struct worker *w)
{
	return w ? (uint32_t)w->pid : 0;
}

bool worker_has_begun(const struct worker *w)
{
	return w->ready;
}

int worker_fd(const struct worker *w)
{
	return w->sock;
}

int worker_send(struct worker *w, const void *request, size_t len, const int *fds, size_t n)
{
	const struct head h = { .number = w->sent + 1 };
	int rc = w->sock < 0 ? -EPIPE : send_one(w->sock, &h, request, len, fds, n, MSG_DONTWAIT);

	if (!rc)
		w->sent++;
	return rc == -ECONNRESET ? -EPIPE : rc;
}

/* False if the time is over, or the user wants an end. */
static bool wait_for(int sock, int timeout_ms, uint64_t end_ns)
{
	uint64_t now = now_ns();

	if (timeout_ms >= 0 && now >= end_ns)
		return false;
	return interrupt_wait(sock, timeout_ms < 0 ? -1 : (int)((end_ns - now + 999999) / 1000000)) >= 0;
}

/* A received message: N bytes after its head, the first SIZE of them at BYTES. */
struct message {
	struct head head;
	char *bytes;
	size_t size, n;
	char more[WHY_BYTES]; /* the rest: room for an error text, even if replies are short */
};

static void take_text(char *to, size_t to_size, const struct message *m)
{
	size_t first = MIN(m->n, m->size);

	snprintf(to, to_size, "%.*s%.*s", (int)MIN(first, to_size - 1), first ? m->bytes : "",
		(int)(m->n - first), m->more);
}

/* Check and take M. 1 = RET is filled in; -EAGAIN = the worker has begun; else like worker_receive(). */
static int take(struct worker *w, const struct message *m, struct worker_reply *ret)
{
	const struct head *h = &m->head;

	if (h->error > 0 || h->error < -4095 || (!h->error && m->n > m->size))
		return -EPROTO;
	if (!w->ready && h->number == 0 && h->error) {
		w->refusal = h->error;
		take_text(w->refused, sizeof(w->refused), m);
		return -EPIPE;
	}
	if (!w->ready && h->number == 0) {
		w->ready = true;
		return -EAGAIN;
	}
	if (!w->ready || h->number != (w->opts.reports ? 0 : w->replied + 1) || h->number > w->sent)
		return -EPROTO;
	w->replied = h->number;
	ret->error = h->error;
	ret->len = h->error ? 0 : m->n;
	if (h->error)
		take_text(ret->why, sizeof(ret->why), m);
	return 1;
}

/* Take the next message without waiting: like take(), and 0 = none. */
static int next(struct worker *w, void *bytes, size_t size, bool want_fd, struct worker_reply *ret)
{
	struct message m = { .bytes = bytes, .size = size };
	struct iovec v[] = { { &m.head, sizeof(m.head) }, { bytes, size }, { m.more, sizeof(m.more) } };
	int fds[WORKER_FDS] = { -1, -1 }, rc;
	bool cut; /* ignored: without a free descriptor here, the reply has none */
	ssize_t n = receive_one(w->sock, v, ARRAY_LEN(v), want_fd ? fds : NULL, MSG_DONTWAIT, &cut);

	*ret = (struct worker_reply){ .fd = -1 };
	m.n = (size_t)MAX(n, 0);
	rc = n >= 0 ? take(w, &m, ret) : n == -EAGAIN ? 0 : n == -EMSGSIZE ? -EPROTO : (int)n;
	if (rc == 1 && !ret->error) {
		ret->fd = fds[0];
		fds[0] = -1;
	}
	close_fds(fds);
	return rc;
}

int worker_receive(
	struct worker *w, int timeout_ms, void *bytes, size_t size, bool want_fd, struct worker_reply *ret)
{
	uint64_t end_ns = now_ns() + (timeout_ms > 0 ? (uint64_t)timeout_ms * 1000000 : 0);

	if (w->sock < 0)
		return -EPIPE;
	for (;;) {
		int rc;

		rc = next(w, bytes, size, want_fd, ret);
		if (rc && rc != -EAGAIN)
			return rc;
		if (rc == 0 && !wait_for(w->sock, timeout_ms, end_ns))
			return 0;
	}
}

/* Wait at most MS for PID to end. */
static bool has_ended(pid_t pid, unsigned int ms)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t end_ns = now_ns() + ms * UINT64_C(1000000);
	siginfo_t info = { 0 };

	for (;;) {
		uint64_t now;

		/* -1: another wait, for any child, has reaped it */
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid)
			return true;
		now = now_ns();
		if (now >= end_ns)
			return false;
		if (fd < 0)
			usleep(1000);
		else
			poll(&p, 1, (int)((end_ns - now) / 1000000) + 1);
	}
}

static void describe_end(const struct worker *w, bool killed, struct worker_end *end)
{
	const char *who = w->opts.who, *name;
	int s = end->status;

	if (w->refusal)
		snprintf(end->why, sizeof(end->why), "%s could not begin: %s", who, w->refused);
	else if (killed)
		snprintf(end->why, sizeof(end->why), "%s did not end and was killed", who);
	else if (s != -1 && WIFSIGNALED(s) && WTERMSIG(s) == SIGSYS)
		snprintf(end->why, sizeof(end->why), "%s was killed at a system call that it may not make",
			who);
	else if (s != -1 && WIFSIGNALED(s) && (name = sigabbrev_np(WTERMSIG(s))))
		snprintf(end->why, sizeof(end->why), "%s was killed by SIG%s", who, name);
	else if (s != -1 && WIFSIGNALED(s))
		snprintf(end->why, sizeof(end->why), "%s was killed by signal %d", who, WTERMSIG(s));
	else if (s != -1 && WIFEXITED(s))
		snprintf(end->why, sizeof(end->why), "%s ended with status %d", who, WEXITSTATUS(s));
	else
		snprintf(end->why, sizeof(end->why), "%s has ended", who);
}

/* A message that says why the worker could not begin may still be unread. */
static void read_refusal(struct worker *w)
{
	struct worker_reply r;

	if (w->sock >= 0 && !w->ready)
		next(w, NULL, 0, false, &r);
}

void worker_stop(struct worker *w, unsigned int grace_ms, struct worker_end *ret)
{
	struct worker_end end = { .status = -1 };
	bool killed = false;

	read_refusal(w);
	if (w->sock >= 0)
		close(w->sock);
	w->sock = -1;
	if (w->pid > 0) {
		killed = !has_ended(w->pid, grace_ms);
		if (killed) {
			kill(w->pid, SIGKILL);
			has_ended(w->pid, KILLED_MS);
		}
		if (wait4(w->pid, &end.status, WNOHANG, &end.usage) != w->pid)
			end.status = -1;
	}
	w->pid = 0;
	if (ret) {
		describe_end(w, killed, &end);
		*ret = end;
	}
}

int worker_ready(struct worker *w, struct err *e)
{
	uint64_t end_ns = now_ns() + REPLY_SECONDS * UINT64_C(1000000000);
	struct worker_end end;
	struct worker_reply r;
	bool waited;
	int rc = 0;

	if (!w || w->ready)
		return 0;
	while (!rc && !w->ready && w->sock >= 0 && wait_for(w->sock, 0, end_ns)) {
		rc = next(w, NULL, 0, false, &r);
		rc = rc == -EAGAIN ? 0 : rc;
	}
	if (w->ready)
		return 0;
	waited = !rc && w->sock >= 0;
	worker_stop(w, waited ? 0 : GRACE_MS, &end);
	if (!waited)
		snprintf(w->stats.why, sizeof(w->stats.why), "%s", end.why);
	else if (interrupt_pending())
		snprintf(w->stats.why, sizeof(w->stats.why), "interrupted before %s had begun", w->opts.who);
	else
		snprintf(w->stats.why, sizeof(w->stats.why),
			"%s did not begin within %d s, as if stopped, and was killed", w->opts.who,
			REPLY_SECONDS);
	return err_set(e, w->refusal ? w->refusal : waited ? -ETIMEDOUT : -EIO, "%s", w->stats.why);
}

/* Stop a worker that cannot be used any more. WHAT: what it did; NULL = it has ended. */
static void give_up(struct worker *w, const char *what)
{
	struct worker_end end;

	worker_stop(w, what ? 0 : GRACE_MS, &end);
	if (what)
		snprintf(w->stats.why, sizeof(w->stats.why), "%s %s and was killed", w->opts.who, what);
	else
		snprintf(w->stats.why, sizeof(w->stats.why), "%s", end.why);
}

/* How long a call may take from now on, in ms. */
static int patience_ms(const struct worker *w)
{
	const uint64_t now = now_ns();

	if (!w->end_ns)
		return REPLY_SECONDS * 1000;
	return w->end_ns > now ? (int)MIN((w->end_ns - now) / 1000000, REPLY_SECONDS * 1000u) : 0;
}

static ssize_t call(
	struct worker *w, const void *request, size_t len, void *bytes, size_t size, int *fd, struct err *e)
{
	struct worker_reply r = { .fd = -1 };
	int rc = worker_send(w, request, len, NULL, 0);

	if (!rc)
		rc = worker_receive(w, patience_ms(w), bytes, size, fd != NULL, &r);
	if (rc != 1) {
		w->stats.lost++;
		if (w->sock >= 0)
			give_up(w, rc == 0        ? "did not reply"
				   : rc == -EPIPE ? NULL
						  : "sent a malformed reply");
		return err_set(e, -ENOTCONN, "%s", w->stats.why);
	}
	w->stats.requested++;
	if (fd)
		*fd = r.fd;
	return r.error ? err_set(e, r.error, "%s", r.why) : (ssize_t)r.len;
}

ssize_t worker_call(
	struct worker *w, const void *request, size_t len, void *bytes, size_t size, int *fd, struct err *e)
{
	ssize_t n;

	if (fd)
		*fd = -1;
	if (!w)
		return -ENOTCONN;
	pthread_mutex_lock(&w->lock);
	n = call(w, request, len, bytes, size, fd, e);
	pthread_mutex_unlock(&w->lock);
	return n;
}

void worker_limit(struct worker *w, uint64_t end_ns)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->end_ns = end_ns;
	pthread_mutex_unlock(&w->lock);
}

void worker_stats(struct worker *w, struct worker_stats *ret)
{
	*ret = (struct worker_stats){ 0 };
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	*ret = w->stats;
	pthread_mutex_unlock(&w->lock);
}

int worker_wait(struct worker *w, unsigned int seconds, struct err *e)
{
	uint64_t end_ns = now_ns() + seconds * UINT64_C(1000000000);
	struct worker_end end;
	struct worker_reply r;
	int rc = 0;

	while ((rc == 0 || rc == -EAGAIN) && wait_for(w->sock, 0, end_ns))
		rc = next(w, NULL, 0, false, &r);
	if (rc == 0 || rc == -EAGAIN) {
		worker_stop(w, 0, NULL);
		return err_set(e, -ETIMEDOUT, "%s took longer than %u s", w->opts.who, seconds);
	}
	worker_stop(w, GRACE_MS, &end);
	return end.status == 0 ? 0 : err_set(e, -EIO, "%s", end.why);
}

int worker_try(int (*fn)(void *arg), void *arg)
{
	const struct rlimit no_core = { 0 };
	/* in this order: getpid() differs in the child */
	const pid_t parent = getpid(), pid = fork_silently(false);
	pid_t got;
	int status;

	if (pid == 0) {
		child_begin(parent, NULL);
		setrlimit(RLIMIT_CORE, &no_core);
		leave(fn(arg));
	}
	if (pid < 0)
		return 0;
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	return got != pid ? 0 : WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void worker_hurry(void)
{
	/* struct sched_attr, which not every libc defines */
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = 48, .nice = -10, .runtime = 100000 };

	if (syscall(SYS_sched_setattr, 0, &attr, 0) == 0)
		return;
	/* anyone may have the time slice */
	attr.nice = getpriority(PRIO_PROCESS, 0);
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

int worker_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	/* without the flag only if it is unknown: a kernel that knows it logs a message if it is missing */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
