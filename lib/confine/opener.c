/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opener.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define END_MS 100
#define ANSWER_SECONDS 10 /* a file system may take its time */

struct opener {
	pthread_mutex_t lock;
	int sock; /* -1 = over */
	pid_t pid;
	uint32_t number;
	struct opener_stats stats;
};

int opener_new(int sock, pid_t pid, struct opener **ret, struct err *e)
{
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	struct opener *o = calloc(1, sizeof(*o));

	if (!o) {
		close(sock);
		return err_nomem(e, "the opener");
	}
	pthread_mutex_init(&o->lock, NULL);
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	o->sock = sock;
	o->pid = pid;
	*ret = o;
	return 0;
}

/* Its wait status; -1: it had to be ended. Whose socket is closed ends by itself. */
static int reap(pid_t pid)
{
	int status = -1;

	for (int i = 0; i < END_MS; i++) {
		if (waitpid(pid, &status, WNOHANG) != 0)
			return status;
		usleep(1000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return -1;
}

/* It is over; how it ended is told where it can be. */
static void hang_up(struct opener *o, const char *why)
{
	int status;

	close(o->sock);
	o->sock = -1;
	snprintf(o->stats.why, sizeof(o->stats.why), "%s", why);
	if (o->pid <= 0)
		return;
	status = reap(o->pid);
	if (status != -1 && WIFSIGNALED(status)) {
		snprintf(o->stats.why, sizeof(o->stats.why), "it was ended by a signal: %s",
			strsignal(WTERMSIG(status)));
	}
	o->pid = 0;
}

static int receive(struct opener *o, struct openwire_answer *a, int *fd);

int opener_ready(struct opener *o, struct err *e)
{
	struct openwire_answer a = { 0 };
	int fd = -1, rc = o ? receive(o, &a, &fd) : 0;

	if (fd >= 0)
		close(fd);
	rc = rc || !o ? rc : a.error;
	if (!rc)
		return 0;
	hang_up(o, "it could not enter its sandbox");
	return err_set(e, rc, "the process that opens files is not there: %s", o->stats.why);
}

void opener_free(struct opener *o)
{
	if (!o)
		return;
	if (o->sock >= 0)
		hang_up(o, "");
	pthread_mutex_destroy(&o->lock);
	free(o);
}

uint32_t opener_pid(const struct opener *o)
{
	return o && o->sock >= 0 && o->pid > 0 ? (uint32_t)o->pid : 0;
}

static int take_fd(struct msghdr *h)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		c->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* One answer; 0, or -errno where there is none to be had. */
static int receive(struct opener *o, struct openwire_answer *a, int *fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec v = { a, sizeof(*a) - 1 };
	struct msghdr h = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t n;

	do
		n = recvmsg(o->sock, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*fd = take_fd(&h);
	if (n < (ssize_t)offsetof(struct openwire_answer, path)) {
		if (*fd >= 0)
			close(*fd);
		return -EPIPE;
	}
	((char *)a)[n] = '\0';
	return 0;
}

static int talk(struct opener *o, const struct openwire_request *q, struct openwire_answer *a, int *fd)
{
	size_t len = offsetof(struct openwire_request, path) + strlen(q->path) + 1;

	if (send(o->sock, q, len, MSG_NOSIGNAL) != (ssize_t)len)
		return -EPIPE;
	return receive(o, a, fd);
}

static int ask_locked(struct opener *o, struct openwire_request *q, struct openwire_answer *a, int *fd)
{
	int rc;

	if (o->sock < 0) {
		o->stats.lost++;
		return -ENOTCONN;
	}
	q->number = ++o->number;
	rc = talk(o, q, a, fd);
	if (!rc && a->number == q->number) {
		o->stats.asked++;
		return 0;
	}
	if (!rc && *fd >= 0)
		close(*fd);
	*fd = -1;
	o->stats.lost++;
	hang_up(o, rc == -EAGAIN ? "it did not answer and was ended"
		   : rc          ? "it has ended"
				 : "it gave a wrong answer and was ended");
	return -ENOTCONN;
}

int opener_ask(struct opener *o, struct openwire_request *q, struct openwire_answer *a, int *fd)
{
	int got = -1, rc;

	if (!o)
		return -ENOTCONN;
	pthread_mutex_lock(&o->lock);
	rc = ask_locked(o, q, a, &got);
	pthread_mutex_unlock(&o->lock);
	rc = rc ? rc : a->error;
	if (rc > 0)
		rc = -EPROTO;
	if (got >= 0 && (rc || !fd)) {
		close(got);
		got = -1;
	}
	if (fd)
		*fd = got;
	return rc;
}

/* A descriptor, with the status where ST is not NULL. */
static int ask_fd(struct opener *o, struct openwire_request *q, struct stat *st)
{
	struct openwire_answer a;
	int fd = -1, rc = opener_ask(o, q, &a, &fd);

	if (rc)
		return rc;
	if (st)
		*st = a.st;
	return fd >= 0 ? fd : -EMFILE; /* no room for it here */
}

static int ask_stat(struct opener *o, struct openwire_request *q, struct stat *st)
{
	struct openwire_answer a;
	int rc = opener_ask(o, q, &a, NULL);

	if (!rc)
		*st = a.st;
	return rc;
}

int opener_proc(struct opener *o, enum openwire_kind kind, uint32_t pid)
{
	struct openwire_request q = { .kind = kind, .pid = pid };

	return ask_fd(o, &q, NULL);
}

int opener_maps_exe(struct opener *o, uint32_t pid, char **exe)
{
	struct openwire_request q = { .kind = OPENWIRE_MAPS, .pid = pid, .arg = 1 };
	struct openwire_answer a;
	int fd = -1, rc = opener_ask(o, &q, &a, &fd);

	*exe = rc == 0 && a.path[0] ? strdup(a.path) : NULL;
	return rc ? rc : fd >= 0 ? fd : -EMFILE;
}

int opener_mapping(struct opener *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st)
{
	struct openwire_request q = { .kind = OPENWIRE_MAPPING, .pid = pid, .start = start, .end = end };

	return ask_fd(o, &q, st);
}

int opener_mapping_stat(struct opener *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st)
{
	struct openwire_request q = {
		.kind = OPENWIRE_MAPPING, .pid = pid, .status_only = 1, .start = start, .end = end
	};

	return ask_stat(o, &q, st);
}

static int ask_path(struct opener *o, uint32_t pid, const char *path, bool status_only, struct stat *st)
{
	struct openwire_request q = { .kind = OPENWIRE_PATH, .pid = pid, .status_only = status_only };

	if ((size_t)snprintf(q.path, sizeof(q.path), "%s", path) >= sizeof(q.path))
		return -ENAMETOOLONG;
	return status_only ? ask_stat(o, &q, st) : ask_fd(o, &q, st);
}

int opener_path(struct opener *o, uint32_t pid, const char *path, struct stat *st)
{
	return ask_path(o, pid, path, false, st);
}

int opener_path_stat(struct opener *o, uint32_t pid, const char *path, struct stat *st)
{
	return ask_path(o, pid, path, true, st);
}

int opener_tmp_stat(struct opener *o, uint32_t pid, struct stat *st)
{
	struct openwire_request q = { .kind = OPENWIRE_TMP, .pid = pid };

	return ask_stat(o, &q, st);
}

int opener_perf_map(struct opener *o, uint32_t pid, uint32_t number, struct stat *st)
{
	struct openwire_request q = { .kind = OPENWIRE_PERF_MAP, .pid = pid, .arg = number };

	return ask_fd(o, &q, st);
}

int opener_bpf_map(struct opener *o, enum openwire_kind kind, uint32_t n)
{
	struct openwire_request q = { .kind = kind, .arg = n };

	return ask_fd(o, &q, NULL);
}

void opener_stats(struct opener *o, struct opener_stats *ret)
{
	*ret = (struct opener_stats){ 0 };
	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	*ret = o->stats;
	pthread_mutex_unlock(&o->lock);
}
