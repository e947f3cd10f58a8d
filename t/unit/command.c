/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "system/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static void until_ended(struct command *c)
{
	for (int i = 0; i < 10000 && !command_ended(c); i++)
		usleep(1000);
}

static void runs(struct tap *t)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "exit 7" }, NULL };
	struct command c = { 0 };
	struct err e;

	tap_ok(t, command_prepare(&c, argv, NULL, &e) == 0 && c.pid > 0, "a command is prepared");
	usleep(50000);
	tap_ok(t, kill(c.pid, 0) == 0 && !command_ended(&c), "it waits at its start line");
	tap_ok(t, command_go(&c, argv[0], &e) == 0, "it goes when requested");
	until_ended(&c);
	tap_ok(t, c.ended && WIFEXITED(c.status) && WEXITSTATUS(c.status) == 7, "its exit status is kept");
	tap_ok(t, command_ended(&c), "asking again is harmless");
	command_close(&c);
}

static void fails(struct tap *t)
{
	char *argv[] = { (char[]){ "/no/such/program" }, NULL };
	struct command c = { 0 };
	struct err e;

	tap_ok(t, command_prepare(&c, argv, NULL, &e) == 0, "a command that does not exist is prepared too");
	tap_ok(t, command_go(&c, argv[0], &e) == -ENOENT && strstr(e.msg, argv[0]),
		"its start fails by name");
	tap_ok(t, e.hint[0], "with a hint");
	tap_ok(t, c.ended && waitpid(c.pid, NULL, WNOHANG) == -1, "and leaves no zombie");
	command_close(&c);

	argv[0] = (char[]){ "/etc/passwd" };
	c = (struct command){ 0 };
	tap_ok(t, command_prepare(&c, argv, NULL, &e) == 0 && command_go(&c, argv[0], &e) == -EACCES,
		"a file that is no program");
	command_close(&c);
}

static void never_starts(struct tap *t)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "sleep 100" }, NULL };
	struct command c = { 0 };
	struct err e;
	pid_t pid;

	tap_ok(t, command_prepare(&c, argv, NULL, &e) == 0, "a command that is never told to go");
	pid = c.pid;
	command_close(&c);
	tap_ok(t, kill(pid, 0) != 0 && errno == ESRCH, "is ended and reaped");
	command_close(&c);
	c = (struct command){ .start_fd = -1 };
	command_close(&c);
	tap_ok(t, true, "closing one that was never prepared is harmless");
}

static void keeps_its_signals(struct tap *t)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "kill -TERM $$; sleep 100" }, NULL };
	struct command c = { 0 };
	sigset_t blocked, old;
	struct err e;

	sigfillset(&blocked);
	sigprocmask(SIG_BLOCK, &blocked, &old);
	tap_ok(t, command_prepare(&c, argv, &old, &e) == 0 && command_go(&c, argv[0], &e) == 0,
		"with all signals blocked here");
	until_ended(&c);
	tap_ok(t, c.ended && WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGTERM,
		"the command takes its own");
	sigprocmask(SIG_SETMASK, &old, NULL);
	command_close(&c);
}

/* The fields of /proc/PID/NAME as text; "" when it cannot be read. */
static const char *proc_text(pid_t pid, const char *name, char *buf, size_t cap)
{
	char path[64];
	FILE *f;
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	f = fopen(path, "re");
	if (f) {
		n = fread(buf, 1, cap - 1, f);
		fclose(f);
	}
	buf[n] = '\0';
	return buf;
}

/* A program that says so with its first instructions. */
static char *say[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "echo run >&9; exit 7" }, NULL };

/* Start ARGV held; its descriptor 9 is *FD. */
static int start_held(struct command *c, char *const argv[], int *fd, struct err *e)
{
	int ends[2];
	int rc;

	if (pipe2(ends, O_CLOEXEC) != 0 || dup2(ends[1], 9) != 9)
		abort();
	close(ends[1]);
	*fd = ends[0];
	*c = (struct command){ .hold = true };
	rc = command_prepare(c, argv, NULL, e);
	close(9);
	return rc ? rc : command_go(c, argv[0], e);
}

static bool is_quiet(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 50) == 0;
}

static void holds(struct tap *t)
{
	char buf[4096];
	struct command c;
	struct err e;
	int fd;

	if (start_held(&c, say, &fd, &e) != 0 || !c.held) {
		tap_skip(t, "a command is held at its exec", "ptrace is not permitted here");
		return;
	}
	tap_ok(t, strcmp(proc_text(c.pid, "comm", buf, sizeof(buf)), "sh\n") == 0,
		"a command that is held is the new program already");
	tap_ok(t, strstr(proc_text(c.pid, "status", buf, sizeof(buf)), "State:\tt") != NULL,
		"and stands (state t)");
	tap_ok(t, is_quiet(fd) && !command_ended(&c), "not one instruction of it has run");
	proc_text(c.pid, "maps", buf, sizeof(buf));
	tap_ok(t, strstr(buf, "[stack]") && !strstr(buf, "libc.so"),
		"its image is mapped, its libraries are not: the loader has not begun");
	command_release(&c);
	tap_ok(t, !c.held && read(fd, buf, 4) == 4 && memcmp(buf, "run\n", 4) == 0, "let go, it runs");
	until_ended(&c);
	tap_ok(t, WIFEXITED(c.status) && WEXITSTATUS(c.status) == 7, "and ends as it would without");
	command_release(&c);
	command_close(&c);
	close(fd);
}

static void held_ones_end(struct tap *t)
{
	char *argv[] = { (char[]){ "/no/such/program" }, NULL };
	struct command c;
	struct err e;
	pid_t pid;
	int fd;

	tap_ok(t, start_held(&c, argv, &fd, &e) == -ENOENT && c.ended && !c.held,
		"one that cannot exec is not held, and its start fails");
	tap_ok(t, waitpid(c.pid, NULL, WNOHANG) == -1 && errno == ECHILD, "it leaves no zombie");
	command_close(&c);
	close(fd);
	if (start_held(&c, say, &fd, &e) != 0 || !c.held) {
		tap_skip(t, "a held command that is given up runs", "ptrace is not permitted here");
		return;
	}
	pid = c.pid;
	command_close(&c);
	until_ended(&c);
	tap_ok(t, c.ended && c.pid == pid && WIFEXITED(c.status) && WEXITSTATUS(c.status) == 7,
		"a held command that is given up runs all the same");
	close(fd);
}

/* A signal that comes while it is held is not lost, and does not end the hold. */
static void keeps_signals_while_held(struct tap *t)
{
	struct command c;
	struct err e;
	int fd;

	if (start_held(&c, say, &fd, &e) != 0 || !c.held) {
		tap_skip(t, "a signal waits for a held command", "ptrace is not permitted here");
		return;
	}
	kill(c.pid, SIGTERM);
	tap_ok(t, is_quiet(fd) && !command_ended(&c), "a signal does not let a held command go");
	command_release(&c);
	until_ended(&c);
	tap_ok(t, WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGTERM, "but is waiting for it");
	close(fd);
}

/*
 * The child is told to go when it has signals pending already: it stops at
 * each of them before and after its exec, and none may be taken for that.
 */
static void signals_before_exec(struct tap *t)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "exit 7" }, NULL };
	struct command c = { .hold = true };
	sigset_t blocked, old;
	struct err e;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGCONT);
	sigprocmask(SIG_BLOCK, &blocked, &old);
	if (command_prepare(&c, argv, NULL, &e) != 0)
		abort();
	sigprocmask(SIG_SETMASK, &old, NULL);
	kill(c.pid, SIGUSR1);
	kill(c.pid, SIGCONT);
	tap_ok(t, command_go(&c, argv[0], &e) == 0, "a command with blocked signals pending goes");
	command_release(&c);
	until_ended(&c);
	tap_ok(t, WIFEXITED(c.status) && WEXITSTATUS(c.status) == 7, "and they stay blocked in it");
}

/* Send SIG to the child again and again while it starts. */
static void bombard(struct tap *t, int sig, const char *name)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "exit 7" }, NULL };
	struct command c;
	bool fine = true;
	struct err e;
	pid_t sender;

	for (int i = 0; i < 30 && fine; i++) {
		c = (struct command){ .hold = true };
		if (command_prepare(&c, argv, NULL, &e) != 0)
			abort();
		sender = fork();
		if (sender == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (int n = 0; n < 1000000 && kill(c.pid, sig) == 0; n++)
				;
			_exit(0);
		}
		fine = command_go(&c, argv[0], &e) == 0;
		command_release(&c);
		kill(sender, SIGKILL);
		waitpid(sender, NULL, 0);
		until_ended(&c);
		fine = fine && c.ended &&
		       (WIFEXITED(c.status) || (WIFSIGNALED(c.status) && WTERMSIG(c.status) == sig));
	}
	tap_ok(t, fine, "%s", name);
}

/*
 * A process can have one tracer: in a child that is traced by this one, a
 * command is tried; it reports by its exit status.
 */
static int traced_command(void)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "exit 7" }, NULL };
	struct command c = { .hold = true };
	struct err e;

	if (command_prepare(&c, argv, NULL, &e) != 0)
		return 1;
	/* whoever traces us traces the command too (PTRACE_O_TRACEFORK) */
	if (command_go(&c, argv[0], &e) != 0)
		return 2;
	if (c.held)
		return 3;
	command_release(&c);
	until_ended(&c);
	return WIFEXITED(c.status) && WEXITSTATUS(c.status) == 7 ? 0 : 4;
}

static void already_traced(struct tap *t)
{
	int st = 0, code = -1;
	pid_t pid = fork(), who;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(99);
		raise(SIGSTOP);
		_exit(traced_command());
	}
	if (waitpid(pid, &st, 0) != pid || !WIFSTOPPED(st)) {
		tap_skip(t, "a command under another tracer", "ptrace is not permitted here");
		return;
	}
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (long)(PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL));
	ptrace(PTRACE_CONT, pid, NULL, 0L);
	while ((who = waitpid(-1, &st, __WALL)) > 0) {
		int sig = WIFSTOPPED(st) ? WSTOPSIG(st) : 0;

		if (who == pid && !sig)
			code = WIFEXITED(st) ? WEXITSTATUS(st) : -2;
		if (sig)
			ptrace(PTRACE_CONT, who, NULL, (long)(sig == SIGTRAP || sig == SIGSTOP ? 0 : sig));
	}
	if (!tap_ok(t, code == 0, "where another tracer has the command already, it runs without being held"))
		tap_diag("%d", code);
}

static void ended_before(struct tap *t)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "exit 7" }, NULL };
	struct command c = { .hold = true };
	struct err e;

	if (command_prepare(&c, argv, NULL, &e) != 0)
		abort();
	kill(c.pid, SIGKILL);
	usleep(20000);
	tap_ok(t, command_go(&c, argv[0], &e) == 0 && !c.held,
		"one that a signal ended at its start line is started, and does not end us");
	until_ended(&c);
	tap_ok(t, WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGKILL, "its status has the signal");
	command_close(&c);
}

int main(void)
{
	struct tap t = { 0 };

	runs(&t);
	fails(&t);
	never_starts(&t);
	keeps_its_signals(&t);
	holds(&t);
	held_ones_end(&t);
	keeps_signals_while_held(&t);
	signals_before_exec(&t);
	bombard(&t, SIGCONT, "a harmless signal at any time of its start changes nothing");
	bombard(&t, SIGTERM, "nor is one that ends it taken for anything else");
	already_traced(&t);
	ended_before(&t);
	return tap_done(&t);
}
