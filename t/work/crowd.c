/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crowd N FILE... - N processes of these programs, as many of each. A program is
 * run with the arguments "wait" and the number of its processes, and forks the
 * others, which takes a fraction of an exec. Prints the number of processes
 * after starting them, and kills them when stdin ends. "crowd wait M" is such a
 * program, so crowd can be one of the files itself: linked statically it is small.
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

/*
 * Reports to stdout that this process runs, and waits until its parent ends. Wakes up every
 * 2 s, so that a process whose wait began before its table was ready is recorded again.
 */
static int wait_for_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "one-of-many");
	if (write(STDOUT_FILENO, ".", 1) != 1)
		return 1;
	close(STDOUT_FILENO);
	while (getppid() == parent)
		sleep(2);
	return 0;
}

/* N processes, of which this is the first. */
static int wait_with(long n)
{
	const pid_t parent = getppid(), self = getpid();

	for (long i = 1; i < n; i++)
		if (fork() == 0)
			return wait_for_parent(self);
	return wait_for_parent(parent);
}

int main(int argc, char **argv)
{
	char *child[] = { argv[0], "wait", NULL, NULL }, *env[] = { NULL };
	char many[24], text[4096];
	long n = argc > 2 ? atol(argv[1]) : 0, files = argc - 2, started = 0;
	posix_spawn_file_actions_t actions;
	pid_t *pids;
	int fds[2];
	ssize_t got;

	if (argc == 3 && strcmp(argv[1], "wait") == 0)
		return wait_with(atol(argv[2]));
	pids = calloc(files > 0 ? (size_t)files : 1, sizeof(*pids));
	if (!pids || pipe2(fds, O_CLOEXEC) != 0)
		return 1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	child[2] = many;
	for (long i = 0; i < files && i < n; i++) {
		snprintf(many, sizeof(many), "%ld", (n - i + files - 1) / files);
		child[0] = argv[2 + i];
		if (posix_spawn(&pids[i], child[0], &actions, NULL, child, env) != 0)
			pids[i] = 0;
	}
	close(fds[1]);
	while ((got = read(fds[0], text, sizeof(text))) > 0)
		started += got;
	printf("%ld\n", started);
	fflush(stdout);
	while (read(0, text, 1) > 0)
		;
	for (long i = 0; i < files; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}
