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
	tap_ok(t, kill(c.pid, 0) == 0 && !command_ended(&c), "a prepared command waits");
	tap_ok(t, command_go(&c, argv[0], &e) == 0, "a prepared command starts on request");
	until_ended(&c);
	tap_ok(t, c.ended && WIFEXITED(c.status) && WEXITSTATUS(c.status) == 7,
		"the exit status of a command is kept");
	tap_ok(t, command_ended(&c), "checking again whether a command has ended is harmless");
	command_close(&c);
}

static void fails(struct tap *t)
{
	char *argv[] = { (char[]){ "/no/such/program" }, NULL };
	struct command c = { 0 };
	struct err e;

	tap_ok(t, command_prepare(&c, argv, NULL, &e) == 0, "a command that does not exist can be prepared");
	tap_ok(t, command_go(&c, argv[0], &e) == -ENOENT && strstr(e.msg, argv[0]),
		"starting a command that does not exist fails with its name");
	tap_ok(t, e.hint[0], "the failed start has a hint");
	tap_ok(t, c.ended && waitpid(c.pid, NULL, WNOHANG) == -1, "the failed start leaves no zombie");
	command_close(&c);

	argv[0] = (char[]){ "/etc/passwd" };
	c = (struct command){ 0 };
	tap_ok(t, command_prepare(&c, argv, NULL, &e) == 0 && command_go(&c, argv[0], &e) == -EACCES,
		"starting a file that is not a program fails");
	command_close(&c);
}

static void never_starts(struct tap *t)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "sleep 100" }, NULL };
	struct command c = { 0 };
	struct err e;
	pid_t pid;

	tap_ok(t, command_prepare(&c, argv, NULL, &e) == 0,
		"a command that is never started can be prepared");
	pid = c.pid;
	command_close(&c);
	tap_ok(t, kill(pid, 0) != 0 && errno == ESRCH,
		"a command that was never started is ended and reaped when it is closed");
	command_close(&c);
	c = (struct command){ .start_fd = -1 };
	command_close(&c);
	tap_ok(t, true, "closing a command that was never prepared is harmless");
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
		"a command starts while its parent blocks all signals");
	until_ended(&c);
	tap_ok(t, c.ended && WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGTERM,
		"a command receives its own signals while its parent blocks all");
	sigprocmask(SIG_SETMASK, &old, NULL);
	command_close(&c);
}

/* Returns the text of /proc/PID/NAME; "" if it cannot be read. */
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

/* A program that writes to descriptor 9 when it runs. */
static char *say[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "echo run >&9; exit 7" }, NULL };

/* Start ARGV held. *FD reads what it writes to descriptor 9. */
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
		"a held command is already the new program");
	tap_ok(t, strstr(proc_text(c.pid, "status", buf, sizeof(buf)), "State:\tt") != NULL,
		"a held command is stopped (state t)");
	tap_ok(t, is_quiet(fd) && !command_ended(&c), "a held command has not run an instruction");
	proc_text(c.pid, "maps", buf, sizeof(buf));
	tap_ok(t, strstr(buf, "[stack]") && !strstr(buf, "libc.so"),
		"a held command is mapped without its libraries: the loader has not started");
	command_release(&c);
	tap_ok(t, !c.held && read(fd, buf, 4) == 4 && memcmp(buf, "run\n", 4) == 0,
		"a held command runs when it is released");
	until_ended(&c);
	tap_ok(t, WIFEXITED(c.status) && WEXITSTATUS(c.status) == 7,
		"a command that was held ends with its usual status");
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
		"a command that cannot exec is not held, and its start fails");
	tap_ok(t, waitpid(c.pid, NULL, WNOHANG) == -1 && errno == ECHILD,
		"a command that cannot exec leaves no zombie");
	command_close(&c);
	close(fd);
	if (start_held(&c, say, &fd, &e) != 0 || !c.held) {
		tap_skip(t, "a held command runs when it is closed", "ptrace is not permitted here");
		return;
	}
	pid = c.pid;
	command_close(&c);
	until_ended(&c);
	tap_ok(t, c.ended && c.pid == pid && WIFEXITED(c.status) && WEXITSTATUS(c.status) == 7,
		"a held command runs when it is closed");
	close(fd);
}

/* A signal to a held command is not lost, and does not release the command. */
static void keeps_signals_while_held(struct tap *t)
{
	struct command c;
	struct err e;
	int fd;

	if (start_held(&c, say, &fd, &e) != 0 || !c.held) {
		tap_skip(t, "a signal to a held command stays pending", "ptrace is not permitted here");
		return;
	}
	kill(c.pid, SIGTERM);
	tap_ok(t, is_quiet(fd) && !command_ended(&c), "a signal does not release a held command");
	command_release(&c);
	until_ended(&c);
	tap_ok(t, WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGTERM,
		"a signal to a held command is delivered when the command is released");
	close(fd);
}

/*
 * The child is started with signals already pending: it stops at each of them
 * before and after its exec, and none of these stops may be mistaken for the exec.
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
	tap_ok(t, command_go(&c, argv[0], &e) == 0, "a command with blocked signals pending starts");
	command_release(&c);
	until_ended(&c);
	tap_ok(t, WIFEXITED(c.status) && WEXITSTATUS(c.status) == 7,
		"pending signals that were blocked stay blocked in the command");
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
 * Runs in a child that this process traces, because a process can have only one
 * tracer. Returns the child's exit status: 0, or the number of the step that failed.
 */
static int traced_command(void)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "exit 7" }, NULL };
	struct command c = { .hold = true };
	struct err e;

	if (command_prepare(&c, argv, NULL, &e) != 0)
		return 1;
	/* our tracer traces the command too (PTRACE_O_TRACEFORK) */
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
	if (!tap_ok(t, code == 0, "a command that already has another tracer runs without being held"))
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
		"starting a command that a signal already ended does no harm");
	until_ended(&c);
	tap_ok(t, WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGKILL,
		"the status of a command that a signal ended before its start has the signal");
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
	bombard(&t, SIGCONT, "SIGCONT at any time of a command's start changes nothing");
	bombard(&t, SIGTERM, "SIGTERM at any time of a command's start ends it with that signal");
	already_traced(&t);
	ended_before(&t);
	return tap_done(&t);
}
