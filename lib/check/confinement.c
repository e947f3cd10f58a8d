/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confinement.h"
#include "caps.h"
#include "root.h"
#include "sandbox.h"

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

/* One message, then silence until the parent closes its end. */
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

	word.code = sandbox_enter(&box, &word.err);
	if (sendmsg(SANDBOX_FD, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof(word))
		recvmsg(SANDBOX_FD, &msg, 0);
	syscall(SYS_exit_group, 0);
}

static int receive(int fd, struct word *word, struct err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, PATIENCE_MS) <= 0)
		return err_set(e, -ETIMEDOUT, "the sandbox was not entered in %d ms", PATIENCE_MS);
	if (recv(fd, word, sizeof(*word), 0) != (ssize_t)sizeof(*word))
		return err_set(e, -ECHILD, "the process that entered the sandbox ended in it");
	if (word->code && e)
		*e = word->err;
	return word->code;
}

static int read_status(pid_t pid, struct confinement *ret, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	struct caps_status s;
	struct root root;
	char path[64];
	int rc = root_open(NULL, &root, e);

	snprintf(path, sizeof(path), "proc/%d/status", (int)pid);
	rc = rc ? rc : root_read(&root, path, 65536, &text, NULL, e);
	root_close(&root);
	if (rc)
		return rc;
	if (caps_status_parse(text, &s) != 0)
		return err_set(e, -EINVAL, "'/%s' is not understood", path);
	ret->no_caps = !s.effective && !s.permitted && s.no_new_privs == 1;
	ret->other_user = geteuid() == 0 && s.uid == SANDBOX_UID;
	ret->seccomp = s.seccomp == 2;
	return 0;
}

static int try_sandbox(struct confinement *ret, struct err *e)
{
	pid_t parent = getpid(), pid;
	struct word word;
	int fds[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return err_sys(e, -errno, "cannot create a socket");
	pid = sandbox_fork();
	if (pid == 0)
		be_confined(fds[1], parent);
	close(fds[1]);
	rc = pid < 0 ? err_sys(e, pid, "cannot start a process") : receive(fds[0], &word, e);
	if (!rc)
		rc = read_status(pid, ret, e);
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
		bool denied = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && sandbox_deny_paths() &&
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
