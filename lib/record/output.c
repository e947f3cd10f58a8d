/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/output.h"
#include "capture/writer.h"
#include "system/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

union control {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* The message, and FD with it unless it is -1. */
static void answer(int sock, const struct err *e, int fd)
{
	struct iovec v = { (void *)(uintptr_t)e, sizeof(*e) };
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
	sendmsg(sock, &h, MSG_NOSIGNAL);
}

__attribute__((noreturn)) static void work(int sock, pid_t parent, const char *path, bool force)
{
	struct err e = { 0 };
	char go;

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && recv(sock, &go, 1, 0) == 1)
		answer(sock, &e, capwrite_create(path, force, &e));
	/* not _exit(2), under which a sanitizer would look for leaks */
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}

int outchild_start(struct outchild *o, const char *path, bool force, struct err *e)
{
	pid_t parent = getpid();
	int pair[2];

	*o = (struct outchild){ .sock = -1, .path = path, .force = force, .fd = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return err_sys(e, -errno, "cannot talk to a process that makes '%s'", path);
	o->pid = sandbox_fork();
	if (o->pid == 0) {
		close(pair[0]);
		work(pair[1], parent, path, force);
	}
	close(pair[1]);
	o->sock = pair[0];
	if (o->pid > 0)
		return 0;
	close(o->sock);
	o->pid = 0;
	o->sock = -1;
	return 0;
}

int outchild_early(struct outchild *o, struct err *e)
{
	if (o->pid)
		return 0;
	o->fd = capwrite_create(o->path, o->force, e);
	return o->fd < 0 ? o->fd : 0;
}

/* A descriptor, or -errno. */
static int receive(int sock, struct err *e)
{
	union control control;
	struct err why = { 0 };
	struct iovec v = { &why, sizeof(why) };
	struct msghdr h = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *c;
	ssize_t n;
	int fd;

	do
		n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(why))
		return err_set(e, -EPIPE, "the process that makes the output has ended");
	c = CMSG_FIRSTHDR(&h);
	if (!why.code && c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(fd))) {
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		return fd;
	}
	if (e)
		*e = why;
	return why.code < 0 ? why.code : err_sys(e, -EMFILE, "cannot take over the output");
}

int outchild_take(struct outchild *o, struct err *e)
{
	int fd = o->fd;

	if (!o->pid) {
		o->fd = -1;
		return fd;
	}
	fd = send(o->sock, "g", 1, MSG_NOSIGNAL) < 0 ? 0 : receive(o->sock, e);
	if (fd == 0)
		fd = err_sys(e, -EPIPE, "the process that makes the output has ended");
	outchild_close(o);
	return fd;
}

void outchild_close(struct outchild *o)
{
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
	if (o->pid <= 0)
		return;
	/* the end of the socket ends it, whoever may not kill it */
	close(o->sock);
	waitpid(o->pid, NULL, 0);
	*o = (struct outchild){ .sock = -1, .fd = -1 };
}
