/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct asker_head {
	uint32_t number;
	int32_t error;
};

#define END_MS 100
#define ANSWER_SECONDS 10 /* a file system may take its time */

struct asker {
	pthread_mutex_t lock;
	int sock; /* -1 = over */
	pid_t pid;
	uint32_t number;
	struct asker_stats stats;
};

int asker_new(int sock, pid_t pid, struct asker **ret, struct err *e)
{
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	struct asker *a = calloc(1, sizeof(*a));

	if (!a) {
		close(sock);
		return err_nomem(e, "requests to a process");
	}
	pthread_mutex_init(&a->lock, NULL);
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	a->sock = sock;
	a->pid = pid;
	*ret = a;
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
static void hang_up(struct asker *a, const char *why)
{
	int status;

	close(a->sock);
	a->sock = -1;
	snprintf(a->stats.why, sizeof(a->stats.why), "%s", why);
	if (a->pid <= 0)
		return;
	status = reap(a->pid);
	if (status != -1 && WIFSIGNALED(status)) {
		snprintf(a->stats.why, sizeof(a->stats.why), "it was ended by a signal: %s",
			strsignal(WTERMSIG(status)));
	}
	a->pid = 0;
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

/* How long the answer is, or -errno where there is none to be had. */
static ssize_t receive(struct asker *a, void *answer, size_t cap, int *fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec v = { answer, cap };
	struct msghdr h = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t n;

	do
		n = recvmsg(a->sock, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*fd = take_fd(&h);
	if (n >= (ssize_t)sizeof(struct asker_head))
		return n;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EPIPE;
}

int asker_ready(struct asker *a, const char *who, struct err *e)
{
	char answer[512];
	struct asker_head head;
	int fd = -1, rc;

	if (!a)
		return 0;
	rc = (int)receive(a, answer, sizeof(answer), &fd);
	if (fd >= 0)
		close(fd);
	memcpy(&head, answer, sizeof(head));
	rc = rc < 0 ? rc : head.error;
	if (!rc)
		return 0;
	hang_up(a, "it could not enter its sandbox");
	return err_set(e, rc, "%s is not there: %s", who, a->stats.why);
}

void asker_free(struct asker *a)
{
	if (!a)
		return;
	if (a->sock >= 0)
		hang_up(a, "");
	pthread_mutex_destroy(&a->lock);
	free(a);
}

uint32_t asker_pid(const struct asker *a)
{
	return a && a->sock >= 0 && a->pid > 0 ? (uint32_t)a->pid : 0;
}

static ssize_t ask_locked(struct asker *a, void *request, size_t len, void *answer, size_t cap, int *fd)
{
	struct asker_head head = { 0 };
	ssize_t n;

	if (a->sock < 0) {
		a->stats.lost++;
		return -ENOTCONN;
	}
	a->number++;
	memcpy(request, &a->number, sizeof(a->number));
	n = send(a->sock, request, len, MSG_NOSIGNAL) == (ssize_t)len ? receive(a, answer, cap, fd) : -EPIPE;
	if (n > 0)
		memcpy(&head, answer, sizeof(head));
	if (n > 0 && head.number == a->number && head.error <= 0) {
		a->stats.asked++;
		return n;
	}
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	a->stats.lost++;
	hang_up(a, n == -EAGAIN ? "it did not answer and was ended"
		   : n < 0      ? "it has ended"
				: "it gave a wrong answer and was ended");
	return -ENOTCONN;
}

ssize_t asker_ask(struct asker *a, void *request, size_t len, void *answer, size_t cap, int *fd)
{
	int got = -1;
	ssize_t n;

	if (!a)
		return -ENOTCONN;
	pthread_mutex_lock(&a->lock);
	n = ask_locked(a, request, len, answer, cap, &got);
	pthread_mutex_unlock(&a->lock);
	if (fd)
		*fd = got;
	else if (got >= 0)
		close(got);
	return n;
}

void asker_stats(struct asker *a, struct asker_stats *ret)
{
	*ret = (struct asker_stats){ 0 };
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	*ret = a->stats;
	pthread_mutex_unlock(&a->lock);
}

void runsoon(void)
{
	/* struct sched_attr, which not every libc has */
	const struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = 48, .nice = -10, .runtime = 100000 };

	syscall(SYS_sched_setattr, 0, &attr, 0);
}
