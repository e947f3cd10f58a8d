/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static void child(const int start[2], const int fail[2], char *const argv[], const void *mask)
{
	char go;
	int code;

	close(start[1]);
	close(fail[0]);
	if (mask)
		sigprocmask(SIG_SETMASK, mask, NULL);
	signal(SIGXFSZ, SIG_DFL);
	if (read(start[0], &go, 1) != 1)
		_exit(127);
	execvp(argv[0], argv);
	code = errno;
	if (write(fail[1], &code, sizeof(code)) != sizeof(code))
		_exit(126);
	_exit(127);
}

int command_prepare(struct command *c, char *const argv[], const void *mask, struct err *e)
{
	int start[2], fail[2];

	if (pipe2(start, O_CLOEXEC) != 0)
		return err_sys(e, -errno, "cannot create a pipe");
	if (pipe2(fail, O_CLOEXEC) != 0) {
		close(start[0]);
		close(start[1]);
		return err_sys(e, -errno, "cannot create a pipe");
	}
	c->pid = fork();
	if (c->pid == 0)
		child(start, fail, argv, mask);
	close(start[0]);
	close(fail[1]);
	c->start_fd = start[1];
	c->fail_fd = fail[0];
	if (c->pid > 0)
		return 0;
	close(start[1]);
	close(fail[0]);
	c->pid = 0;
	return err_sys(e, -errno, "cannot start '%s'", argv[0]);
}

int command_go(struct command *c, const char *name, struct err *e)
{
	int code = 0;
	ssize_t n;

	if (write(c->start_fd, "g", 1) != 1)
		code = errno;
	close(c->start_fd);
	c->start_fd = -1;
	do
		n = read(c->fail_fd, &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	close(c->fail_fd);
	c->fail_fd = -1;
	if (n == 0 && !code)
		return 0;
	waitpid(c->pid, &c->status, 0);
	c->ended = true;
	err_sys(e, -code, "cannot start '%s'", name);
	return code == ENOENT ? err_hint(e, "no such command in PATH") : -code;
}

bool command_ended(struct command *c)
{
	if (c->pid && !c->ended && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->ended = true;
	return c->ended;
}

void command_close(struct command *c)
{
	if (!c->pid || c->start_fd < 0)
		return;
	close(c->start_fd);
	close(c->fail_fd);
	if (!c->ended)
		waitpid(c->pid, &c->status, 0);
	c->start_fd = c->fail_fd = -1;
	c->ended = true;
}
