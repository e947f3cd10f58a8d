/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "idchild.h"
#include "buildid.h"
#include "sandbox.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define SECONDS 5
#define MEMORY (8u << 20)
#define TIMES 4 /* that it is begun in all */

struct answer {
	int rc;
	struct cap_build_id id;
};

union control {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* The descriptor of the next request; -1 = no more. */
static int next_file(int sock)
{
	union control control;
	char byte;
	struct iovec v = { &byte, 1 };
	struct msghdr h = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *c;
	ssize_t n;
	int fd;

	do
		n = recvmsg(sock, &h, 0);
	while (n < 0 && errno == EINTR);
	c = n == 1 ? CMSG_FIRSTHDR(&h) : NULL;
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static bool say(int sock, void *bytes, size_t len, int fd)
{
	struct iovec v = { bytes, len };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };
	union control control = { 0 };

	if (fd >= 0) {
		h.msg_control = &control;
		h.msg_controllen = sizeof(control.space);
		control.align = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd))
		};
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	}
	return sendmsg(sock, &h, MSG_NOSIGNAL) == (ssize_t)len;
}

__attribute__((noreturn)) static void work(int sock, pid_t parent)
{
	const struct sandbox_opts box = {
		.keep_fd = sock, .parent = parent, .comm = "build-ids", .memory_bytes = MEMORY
	};
	struct answer a = { 0 };
	int fd;

	a.rc = sandbox_enter(&box, NULL);
	/* the first answer says that it is there */
	while (say(SANDBOX_FD, &a, sizeof(a), -1) && (fd = next_file(SANDBOX_FD)) >= 0) {
		memset(&a, 0, sizeof(a));
		a.rc = buildid_read(fd, &a.id);
		close(fd);
	}
	/* not _exit(2), under which a sanitizer would look for leaks */
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}

/* 0, or -ECHILD, -ETIMEDOUT. */
static int hear(const struct idchild *c, struct answer *a)
{
	ssize_t n;

	do
		n = recv(c->sock, a, sizeof(*a), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return -ETIMEDOUT;
	return n == sizeof(*a) && a->id.len <= sizeof(a->id.bytes) ? 0 : -ECHILD;
}

int idchild_start(struct idchild *c, struct err *e)
{
	const struct timeval limit = { .tv_sec = SECONDS };
	pid_t parent = getpid();
	struct answer first;
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return err_sys(e, -errno, "cannot talk to a process that reads build IDs");
	c->begun++;
	c->pid = sandbox_fork();
	if (c->pid == 0)
		work(pair[1], parent);
	close(pair[1]);
	c->sock = pair[0];
	rc = c->pid < 0 ? c->pid : 0;
	if (!rc && setsockopt(c->sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0)
		rc = -errno;
	rc = rc ? rc : hear(c, &first);
	rc = rc ? rc : first.rc;
	if (!rc)
		return 0;
	idchild_stop(c);
	return err_sys(e, rc, "cannot start a process that reads build IDs");
}

void idchild_stop(struct idchild *c)
{
	if (!c->pid)
		return;
	close(c->sock);
	/* the end of the socket ends it as well, whoever may not kill it */
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	c->pid = 0;
	c->sock = -1;
}

int idchild_read(struct idchild *c, int fd, struct cap_build_id *ret)
{
	struct answer a;
	char go = 'r';
	int rc = c->pid ? 0 : -ECHILD;

	ret->len = 0;
	if (rc && c->begun < TIMES)
		rc = idchild_start(c, NULL);
	if (rc)
		return rc;
	rc = say(c->sock, &go, 1, fd) ? hear(c, &a) : -ECHILD;
	if (rc) {
		idchild_stop(c);
		return rc;
	}
	*ret = a.id;
	return a.rc;
}
