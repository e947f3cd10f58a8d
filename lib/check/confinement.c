/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/confinement.h"
#include "system/privileges.h"
#include "system/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MEMORY (UINT64_C(1) << 20)
#define PATIENCE_MS 2000

/* What the process in the sandbox says of its way in. */
struct word {
	int code;
	struct err err;
};

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/*
 * Its own /proc/self/status, which it could not open from inside: with hidepid
 * the parent might not find it either.
 */
static void send_status(int fd)
{
	int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	union control c = { .bytes = "" };
	struct iovec iov = { .iov_base = &(char){ 0 }, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (status >= 0) {
		c.head = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
		};
		memcpy(CMSG_DATA(&c.head), &status, sizeof(status));
		msg.msg_control = &c;
		msg.msg_controllen = sizeof(c);
	}
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) != 1)
		_exit(1);
}

/* Two messages, then silence until the parent closes its end. */
static void be_confined(int fd, pid_t parent)
{
	const struct sandbox_opts box = { .keep_fd = fd,
		.parent = parent,
		.comm = "bpfcheck-box",
		.memory_bytes = MEMORY,
		.file_bytes = 0 };
	struct word word = { 0 };
	struct iovec iov = { .iov_base = &word, .iov_len = sizeof(word) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	send_status(fd);
	word.code = sandbox_enter(&box, &word.err);
	if (sendmsg(SANDBOX_FD, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof(word))
		recvmsg(SANDBOX_FD, &msg, 0);
	syscall(SYS_exit_group, 0);
}

/* One message into the LEN bytes at BUF, and a descriptor where one came with it; else *CARRIED is -1. */
static int receive(int fd, void *buf, size_t len, int *carried, struct err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	union control c = { .bytes = "" };
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};

	if (poll(&p, 1, PATIENCE_MS) <= 0)
		return err_set(e, -ETIMEDOUT, "the sandbox was not entered in %d ms", PATIENCE_MS);
	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != (ssize_t)len)
		return err_set(e, -ECHILD, "the process that entered the sandbox ended in it");
	if (carried && CMSG_FIRSTHDR(&msg) && CMSG_FIRSTHDR(&msg)->cmsg_type == SCM_RIGHTS)
		memcpy(carried, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(*carried));
	return 0;
}

static int read_status(int fd, struct confinement *ret, struct err *e)
{
	char text[8192];
	struct caps_status s;
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return err_sys(e, fd < 0 ? -ENOENT : -EIO,
			"cannot read /proc/PID/status of a process in the sandbox");
	text[n] = '\0';
	if (caps_status_parse(text, &s) != 0)
		return err_set(e, -EINVAL, "/proc/PID/status is not understood");
	ret->no_caps = !s.effective && !s.permitted && s.no_new_privs == 1;
	ret->other_user = geteuid() == 0 && s.uid == SANDBOX_UID;
	ret->seccomp = s.seccomp == 2;
	return 0;
}

static int look(int fd, struct confinement *ret, struct err *e)
{
	_cleanup_close_ int status = -1;
	struct word word;
	char byte;
	int rc = receive(fd, &byte, 1, &status, e);

	rc = rc ? rc : receive(fd, &word, sizeof(word), NULL, e);
	if (!rc && word.code) {
		if (e)
			*e = word.err;
		rc = word.code;
	}
	return rc ? rc : read_status(status, ret, e);
}

static int try_sandbox(struct confinement *ret, struct err *e)
{
	pid_t parent = getpid(), pid;
	int fds[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return err_sys(e, -errno, "cannot create a socket");
	pid = sandbox_fork();
	if (pid == 0)
		be_confined(fds[1], parent);
	close(fds[1]);
	rc = pid < 0 ? err_sys(e, pid, "cannot start a process") : look(fds[0], ret, e);
	close(fds[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return rc;
}

static bool paths_denied(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		bool denied = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && pathlock_all() &&
			      open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0 && errno == EACCES;

		syscall(SYS_exit_group, denied);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

int confinement_try(struct confinement *ret, struct err *e)
{
	*ret = (struct confinement){ .landlock = paths_denied() };
	return try_sandbox(ret, e);
}

int confinement_probe(char *found, size_t cap, struct err *e)
{
	struct confinement c;
	char layers[200];
	int rc = confinement_try(&c, e);

	if (rc)
		return err_prefix(e, "files of traced processes cannot be parsed in a sandbox"), rc;
	snprintf(layers, sizeof(layers), "%s%s%s%s", c.no_caps ? "no capability" : "capabilities left",
		c.other_user ? ", user nobody" : "", c.seccomp ? ", few system calls (seccomp)" : "",
		c.landlock ? ", no path (Landlock)" : "");
	if (!c.seccomp && !c.landlock) {
		err_set(e, -EOPNOTSUPP,
			"parsers of traced processes' files can open any file of theirs: neither seccomp nor "
			"Landlock; in force: %s",
			layers);
		return err_hint(
			e, "boot a kernel built with CONFIG_SECCOMP_FILTER=y, or with landlock in lsm=");
	}
	snprintf(found, cap, "parsers of traced processes' files have %s%s%s", layers,
		c.seccomp ? "" : "; no seccomp", c.landlock ? "" : "; no Landlock");
	return 0;
}
