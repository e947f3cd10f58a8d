/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/command.h"
#include "system/elevated.h"
#include "system/interrupt.h"
#include "system/private_user.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void child(const struct command *c, const int start[2], const int fail[2], char *const argv[],
	const void *mask, const struct private_user_was *was)
{
	sigset_t all, own;
	char go, held;
	int code;

	close(start[1]);
	close(fail[0]);
	signal(SIGXFSZ, SIG_DFL);
	/* the parent reads its /proc files like those of any process of the user, so it waits for this */
	if (elevated_shed() != 0)
		_exit(126);
	/* a traced process stops at any signal: block them until the parent waits for that */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &own);
	/* now, while the parent still has the privileges that a tracer needs */
	held = c->hold && ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
	if (write(fail[1], &held, 1) != 1)
		_exit(126);
	if (read(start[0], &go, 1) != 1)
		_exit(127);
	if (!private_user_after_fork(was) || (c->files.rlim_max && setrlimit(RLIMIT_NOFILE, &c->files) != 0))
		_exit(126);
	sigprocmask(SIG_SETMASK, mask ? mask : &own, NULL);
	execvp(argv[0], argv);
	code = errno;
	if (write(fail[1], &code, sizeof(code)) != sizeof(code))
		_exit(126);
	_exit(127);
}

static ssize_t read_again(int fd, void *to, size_t len)
{
	ssize_t n;

	do
		n = read(fd, to, len);
	while (n < 0 && errno == EINTR);
	return n;
}

int command_prepare(struct command *c, char *const argv[], const void *mask, struct err *e)
{
	struct private_user_was was;
	int start[2], fail[2], code;
	char held = 0;

	/* not a pipe: writing to a child that has died meanwhile must not kill us */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, start) != 0)
		return err_sys(e, -errno, "cannot create a pair of sockets");
	if (pipe2(fail, O_CLOEXEC) != 0) {
		close(start[0]);
		close(start[1]);
		return err_sys(e, -errno, "cannot create a pipe");
	}
	/* until it execs, this process may have to kill it, and may be another user by then */
	private_user_before_fork(&was);
	c->pid = fork();
	code = -errno;
	if (c->pid != 0 && !private_user_after_fork(&was))
		code = -EPERM;
	if (c->pid == 0)
		child(c, start, fail, argv, mask, &was);
	close(start[0]);
	close(fail[1]);
	c->start_fd = start[1];
	c->fail_fd = fail[0];
	if (c->pid > 0 && interrupt_wait(fail[0], -1) == 1 && read_again(fail[0], &held, 1) == 1) {
		c->held = held;
		return 0;
	}
	if (c->pid > 0) {
		kill(c->pid, SIGKILL); /* it may be stopped */
		waitpid(c->pid, NULL, 0);
		/* else it could not give up rights that are not the user's */
		code = interrupt_pending() ? -EINTR : -EPERM;
	}
	close(start[1]);
	close(fail[0]);
	c->pid = 0;
	return err_sys(e, code, "cannot start '%s'", argv[0]);
}

/*
 * The kernel stops a traced process with SIGTRAP after its exec, when the pipe is
 * closed, but also at any other signal: those are passed on. Another stop must
 * not be mistaken for the exec: the SIGTRAP would still come, and would kill the
 * process once it is released.
 */
static void await_exec(struct command *c)
{
	struct pollfd pipe_end = { .fd = c->fail_fd, .events = POLLIN };
	pid_t pid;

	for (;;) {
		do
			pid = waitpid(c->pid, &c->status, __WALL);
		while (pid < 0 && errno == EINTR);
		if (pid != c->pid || !WIFSTOPPED(c->status))
			break;
		if (WSTOPSIG(c->status) == SIGTRAP && poll(&pipe_end, 1, 0) > 0)
			return;
		ptrace(PTRACE_CONT, c->pid, NULL, (long)WSTOPSIG(c->status));
	}
	c->held = false;
	c->ended = pid == c->pid;
}

int command_go(struct command *c, const char *name, struct err *e)
{
	int code = 0;
	ssize_t n;

	/* EPIPE: a signal killed it while it waited, as could happen at any later time */
	if (send(c->start_fd, "g", 1, MSG_NOSIGNAL) != 1 && errno != EPIPE)
		code = errno;
	close(c->start_fd);
	c->start_fd = -1;
	if (c->held)
		await_exec(c);
	if (interrupt_wait(c->fail_fd, -1) == -EINTR && interrupt_wait(c->fail_fd, 0) != 1) {
		/* it may be stopped: then it has not executed anything */
		kill(c->pid, SIGKILL);
		code = EINTR;
	}
	n = read_again(c->fail_fd, &code, sizeof(code));
	close(c->fail_fd);
	c->fail_fd = -1;
	if (n == 0 && !code)
		return 0;
	if (!c->ended)
		waitpid(c->pid, &c->status, 0);
	c->ended = true;
	err_sys(e, -code, "cannot start '%s'", name);
	if (code == ENOENT)
		err_hint(e, "no such command in PATH");
	return -code;
}

void command_release(struct command *c)
{
	if (c->held)
		ptrace(PTRACE_DETACH, c->pid, NULL, NULL);
	c->held = false;
}

bool command_ended(struct command *c)
{
	if (c->pid && !c->ended && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->ended = true;
	return c->ended;
}

void command_close(struct command *c)
{
	if (!c->pid || c->start_fd < 0) {
		command_release(c);
		return;
	}
	close(c->start_fd);
	close(c->fail_fd);
	/* it may be stopped: then closing the socket would not end it */
	kill(c->pid, SIGKILL);
	while (!c->ended && waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
		;
	c->held = false;
	c->start_fd = c->fail_fd = -1;
	c->ended = true;
}
