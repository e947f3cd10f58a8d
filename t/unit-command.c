/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "command.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
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
	tap_ok(t, command_go(&c, argv[0], &e) == 0, "it goes when told");
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

int main(void)
{
	struct tap t = { 0 };

	runs(&t);
	fails(&t);
	never_starts(&t);
	keeps_its_signals(&t);
	return tap_done(&t);
}
