/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A parent that waits until its child has called execve, or is gone. The child lives when a byte
 * comes on the FIFO, and the next one is made.
 *
 *   spawn vfork|posix FIFO
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "work.h"

extern char **environ;

FN void fn_vforks(const char *fifo)
{
	pid_t child = vfork();

	if (!child) {
		char c;
		int fd = open(fifo, O_RDWR);

		_exit(read(fd, &c, 1) < 0);
	}
	waitpid(child, NULL, 0);
	KEEP();
}

/* The child of posix_spawn opens the FIFO before execve, and waits for a writer. */
FN void fn_spawns(const char *fifo)
{
	char *const args[] = { (char *)"true", NULL };
	posix_spawn_file_actions_t fa;
	pid_t child;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 5, fifo, O_RDONLY, 0);
	if (posix_spawn(&child, "/bin/true", &fa, NULL, args, environ) == 0)
		waitpid(child, NULL, 0);
	posix_spawn_file_actions_destroy(&fa);
	KEEP();
}

int main(int argc, char **argv)
{
	int posix;

	if (argc < 3)
		return 1;
	posix = !strcmp(argv[1], "posix");
	chain(posix ? "fn_spawns;main" : "fn_vforks;main");
	for (;;) {
		if (posix)
			fn_spawns(argv[2]);
		else
			fn_vforks(argv[2]);
		KEEP();
	}
}
