/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/ptchild.h"
#include "base/clock.h"
#include "procfs/ptwalk.h"
#include "system/proc.h"
#include "system/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define MEMORY_BYTES (UINT64_C(512) << 20)
#ifdef __SANITIZE_ADDRESS__
#define MORE_MEMORY (UINT64_C(32) << 40) /* of addresses, for its shadow */
#else
#define MORE_MEMORY 0
#endif

__attribute__((noreturn)) static void work(const void *arg, int sock, pid_t parent)
{
	const int *copy = arg;
	const struct sandbox_opts box = { .keep_fd = sock,
		.more_fds = copy,
		.n_more = 1,
		.parent = parent,
		.comm = "stack-walks",
		.memory_bytes = MEMORY_BYTES + MORE_MEMORY,
		.n_received = PTWIRE_FILES + 8,
		.libelf = true };
	struct ptwire_answer no = { .n = 0 };
	struct err e = { 0 };

	no.error = sandbox_enter(&box, &e);
	if (!no.error) {
		ptwalk_serve(SANDBOX_FD, SANDBOX_FD + 1);
	} else {
		snprintf(no.why, sizeof(no.why), "%.*s", (int)sizeof(no.why) - 1, e.msg);
		ptwire_answer(SANDBOX_FD, &no);
	}
	/* not _exit(2), under which a sanitizer would look for leaks */
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}

/* CPU time of a process, in ns. */
static uint64_t cpu_of(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) == 0 ? now_on(clock) : 0;
}

/* One that waits, for a file system that does not answer, is not short of time. */
static bool is_runnable(pid_t pid)
{
	struct procinfo_status s;

	return procinfo_status((uint32_t)pid, &s) && s.state == 'R';
}

/* On a busy machine time passes without any of it being the walker's. */
static int await_answer(struct ptchild *c, struct ptwire_answer *ret)
{
	int rc = ptwire_answered(c->sock, ret);
	uint64_t begin = rc == -EAGAIN ? cpu_of(c->pid) : 0;

	for (int i = 1; rc == -EAGAIN && i < PTCHILD_PATIENCE && is_runnable(c->pid) &&
			cpu_of(c->pid) - begin < PTCHILD_SECONDS * UINT64_C(500000000);
		i++)
		rc = ptwire_answered(c->sock, ret);
	return rc;
}

static int answered(struct ptchild *c, struct ptwire_answer *ret, struct err *e)
{
	int rc = await_answer(c, ret), status = -1;

	if (!rc && ret->error)
		return err_set(e, ret->error, "the process that walks stacks failed: %s", ret->why);
	if (!rc)
		return 0;
	if (rc == -EPIPE && waitpid(c->pid, &status, 0) == c->pid)
		c->pid = 0;
	ptchild_stop(c);
	if (rc == -EAGAIN)
		return err_set(e, -ETIMEDOUT, "the process that walks stacks took longer than %d seconds",
			PTCHILD_SECONDS);
	if (status != -1 && WIFSIGNALED(status))
		return err_set(e, -EIO, "the process that walks stacks was ended by a signal: %s",
			strsignal(WTERMSIG(status)));
	return err_sys(e, rc == -EPROTO ? rc : -EIO, "the process that walks stacks does not answer");
}

int ptchild_start(struct ptchild *c, int copy, struct err *e)
{
	const struct timeval time = { .tv_sec = PTCHILD_SECONDS };
	struct ptwire_answer ready;
	pid_t pid;
	int sock;

	*c = (struct ptchild){ .sock = -1 };
	pid = sandbox_start("walks stacks", work, &copy, &sock, e);
	if (pid < 0)
		return pid;
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
	*c = (struct ptchild){ .pid = pid, .sock = sock };
	return answered(c, &ready, e);
}

int ptchild_tell(struct ptchild *c, const struct ptwire_request *r, int fd, struct err *e)
{
	struct ptwire_answer end;
	int rc = ptwire_ask(c->sock, r, fd);

	if (!rc)
		return 0;
	/* it had something to say when it ended, if only by its end */
	return rc == -EPIPE && answered(c, &end, e)
		       ? -EIO
		       : (ptchild_stop(c), err_sys(e, rc, "cannot ask for a walk"));
}

int ptchild_walk(struct ptchild *c, struct ptwire_answer *ret, struct err *e)
{
	int rc = ptchild_tell(c, &(struct ptwire_request){ .what = PTWIRE_WALK }, -1, e);

	return rc ? rc : answered(c, ret, e);
}

void ptchild_stop(struct ptchild *c)
{
	if (c->sock >= 0)
		close(c->sock);
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	*c = (struct ptchild){ .sock = -1 };
}
