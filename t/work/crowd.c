/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crowd N FILE... - N processes that run these programs in turn, each with the
 * argument "wait". Prints the number of processes after starting them, and
 * kills them when stdin ends. "crowd wait" only waits, so crowd can be one of
 * these programs itself: linked statically it is small.
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Wakes up every 2 s, so that a process whose wait began before its table was ready is recorded again. */
static int wait_for_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "one-of-many");
	while (getppid() == parent)
		sleep(2);
	return 0;
}

int main(int argc, char **argv)
{
	char *child[] = { argv[0], "wait", NULL }, *env[] = { NULL };
	long n = argc > 2 ? atol(argv[1]) : 0, started = 0;
	pid_t *pids = calloc((size_t)n + 1, sizeof(*pids));
	char c;

	if (argc == 2 && strcmp(argv[1], "wait") == 0)
		return wait_for_parent(getppid());
	for (; pids && started < n; started++) {
		child[0] = argv[2 + started % (argc - 2)];
		if (posix_spawn(&pids[started], child[0], NULL, NULL, child, env) != 0)
			break;
	}
	printf("%ld\n", started);
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	for (long i = 0; i < started; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}
