/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/tabchild.h"
#include "system/sandbox.h"
#include "unwind/tabwire.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

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

int tabchild_start(const struct tabchild_opts *o, struct tabchild *c, struct err *e)
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

void tabchild_stop(struct tabchild *c, char *why, size_t cap)
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
