/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "system/targets.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void letters(struct tap *t)
{
	static const struct {
		const char *text;
		uint32_t mask;
	} good[] = { { "S", 1 }, { "D", 2 }, { "T", 4 }, { "t", 8 }, { "P", 0x40 }, { "I", 0x400 },
		{ "SD", 3 }, { "DS", 3 }, { "SS", 1 } };
	struct err e;
	uint32_t mask;

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		tap_ok(t, targets_state_mask(good[i].text, &mask, &e) == 0 && mask == good[i].mask,
			"--state %s gives its bit mask", good[i].text);
	tap_ok(t, targets_state_mask("", &mask, &e) == -EINVAL, "an empty --state is refused");
	tap_ok(t, targets_state_mask("S D", &mask, &e) == -EINVAL, "a space in --state is refused");
	tap_ok(t, targets_state_mask("R", &mask, &e) == -EINVAL && strstr(e.msg, "--preempted"),
		"R in --state is refused, and the message names --preempted");
}

static void ends(struct tap *t)
{
	pid_t a = child(), b = child();
	uint32_t pids[2] = { (uint32_t)a, (uint32_t)b }, tids[1];
	struct targets targets;
	struct pollfd pfd = { .events = POLLIN };
	struct err e;

	tap_ok(t, targets_open(&targets, pids, 2, NULL, 0, &e) == 0, "two processes can be watched");
	pfd.fd = targets_fd(&targets);
	tap_ok(t, poll(&pfd, 1, 0) == 0 && !targets_ended(&targets),
		"while both processes live, nothing has ended");
	end(a);
	tap_ok(t, poll(&pfd, 1, 5000) == 1, "the end of one process is reported");
	tap_ok(t, !targets_ended(&targets) && poll(&pfd, 1, 0) == 0,
		"the end of one of two processes is not the end, and is reported once");
	end(b);
	poll(&pfd, 1, 5000);
	tap_ok(t, targets_ended(&targets), "when both processes have ended, all targets have ended");
	tap_ok(t, targets_fd(&targets) == -1, "after the end there is no descriptor to wait for");
	targets_close(&targets);

	a = child();
	tids[0] = (uint32_t)a;
	tap_ok(t, targets_open(&targets, NULL, 0, tids, 1, &e) == 0 && !targets_ended(&targets),
		"a thread can be watched");
	end(a);
	tap_ok(t, targets_ended(&targets), "a watched thread that is gone has ended");
	targets_close(&targets);
	tap_ok(t, targets_open(&targets, NULL, 0, NULL, 0, &e) == 0 && !targets_ended(&targets),
		"without targets there is no end");
	targets_close(&targets);
}

static void refusals(struct tap *t)
{
	pid_t gone = child(), zombie = fork();
	uint32_t id = (uint32_t)gone;
	struct targets targets;
	siginfo_t si;
	struct err e;

	if (zombie == 0)
		_exit(0);
	end(gone);
	tap_ok(t, targets_open(&targets, &id, 1, NULL, 0, &e) == -ESRCH && strstr(e.msg, "no such process"),
		"a process that is gone is refused");
	targets_close(&targets);
	tap_ok(t, targets_open(&targets, NULL, 0, &id, 1, &e) == -ESRCH && strstr(e.msg, "no such thread"),
		"a thread that is gone is refused");
	targets_close(&targets);
	waitid(P_PID, (id_t)zombie, &si, WEXITED | WNOWAIT);
	id = (uint32_t)zombie;
	tap_ok(t, targets_open(&targets, &id, 1, NULL, 0, &e) == -ESRCH && strstr(e.msg, "exited already"),
		"a zombie is refused");
	targets_close(&targets);
	waitpid(zombie, NULL, 0);
}

/* A child that has a child of its own, which has the name NAME; *OF is that one. Both wait. */
static pid_t family(const char *name, pid_t *of)
{
	int fds[2] = { -1, -1 };
	pid_t pid;

	if (pipe(fds) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		pid_t inner = fork();

		if (inner == 0) {
			prctl(PR_SET_NAME, name);
			inner = getpid();
			if (write(fds[1], &inner, sizeof(inner)) != sizeof(inner))
				_exit(1);
		}
		pause();
		_exit(0);
	}
	if (read(fds[0], of, sizeof(*of)) != sizeof(*of))
		*of = -1;
	close(fds[0]);
	close(fds[1]);
	return pid;
}

static bool has(const uint32_t *ids, size_t n, pid_t id)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] == (uint32_t)id)
			return true;
	return false;
}

static void descendants(struct tap *t)
{
	pid_t inner = -1, zombie = fork(), outer = zombie ? family("unit-inner", &inner) : 0;
	const uint32_t pid = (uint32_t)outer, both[2] = { pid, (uint32_t)inner }, self = (uint32_t)getpid();
	const char *name = "unit-inner";
	uint32_t *ids = NULL;
	siginfo_t si;
	size_t n = 9;
	struct err e;

	if (zombie == 0)
		_exit(0);
	waitid(P_PID, (id_t)zombie, &si, WEXITED | WNOWAIT);
	tap_ok(t,
		targets_descendants(&(struct targets_roots){ .pids = &pid, .n_pids = 1 }, &ids, &n, &e) ==
				0 &&
			n == 1 && has(ids, n, inner),
		"a process descends from its parent, which is none of its descendants itself");
	free(ids);
	tap_ok(t,
		targets_count_descendants(&(struct targets_roots){ .pids = &pid, .n_pids = 1 }) == 1 &&
			targets_count_descendants(&(struct targets_roots){ .pids = both, .n_pids = 2 }) ==
				0 &&
			targets_count_descendants(&(struct targets_roots){
				.pids = &pid, .n_pids = 1, .comms = &name, .n_comms = 1 }) == 0 &&
			targets_count_descendants(&(struct targets_roots){ .pids = &self, .n_pids = 1 }) == 2,
		"what descends from a process is counted, without what is given itself and without zombies");
	tap_ok(t,
		targets_descendants(&(struct targets_roots){ .pids = both, .n_pids = 2 }, &ids, &n, &e) ==
				0 &&
			n == 0,
		"a child that is given itself is none of them");
	free(ids);
	tap_ok(t,
		targets_descendants(
			&(struct targets_roots){ .pids = &pid, .n_pids = 1, .comms = &name, .n_comms = 1 },
			&ids, &n, &e) == 0 &&
			n == 0,
		"nor is one that is given by its name");
	free(ids);
	tap_ok(t,
		targets_descendants(&(struct targets_roots){ .pids = &self, .n_pids = 1 }, &ids, &n, &e) ==
				0 &&
			has(ids, n, outer) && has(ids, n, inner) && !has(ids, n, zombie),
		"children of children are found, zombies are not");
	tap_ok(t, n >= 2 && ids[0] < ids[1], "they are in ascending order");
	free(ids);
	tap_ok(t,
		targets_descendants(
			&(struct targets_roots){ .pids = (uint32_t[]){ (uint32_t)getppid() }, .n_pids = 1 },
			&ids, &n, &e) == 0 &&
			!has(ids, n, getpid()) && !has(ids, n, outer),
		"the caller and its children are left out");
	free(ids);
	tap_ok(t, targets_descendants(&(struct targets_roots){ 0 }, &ids, &n, &e) == 0 && n == 0 && ids,
		"nothing descends from nothing");
	free(ids);
	e = (struct err){ 0 };
	targets_unnamed("UNIT-INN", &e);
	tap_ok(t, strstr(e.msg, "no process was named 'UNIT-INN'") && strstr(e.hint, "is named 'unit-inner'"),
		"the hint has a name that contains the missing one, whatever its case");
	end(inner);
	end(outer);
	waitpid(zombie, NULL, 0);
}

int main(void)
{
	struct tap t = { 0 };

	letters(&t);
	ends(&t);
	refusals(&t);
	descendants(&t);
	return tap_done(&t);
}
