/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/fs.h"
#include "base/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define OPENS 50000

/* Rename a file to and fro until it is killed. */
static pid_t rename_forever(int dir)
{
	pid_t pid = fork();

	while (pid == 0) {
		renameat(dir, "here", dir, "there");
		renameat(dir, "there", dir, "here");
	}
	return pid;
}

static int touch(int dir, const char *name)
{
	int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	return fd < 0 ? fd : close(fd);
}

static int opened(int dir, const char *path)
{
	int fd = open_in_root(dir, path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

int main(void)
{
	char folder[] = "/tmp/fs.XXXXXX", command[64];
	struct tap t = { 0 };
	int dir, failed = 0;
	pid_t pid;

	if (!mkdtemp(folder))
		abort();
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tap_ok(&t,
		dir >= 0 && mkdirat(dir, "in", 0700) == 0 && touch(dir, "here") == 0 &&
			touch(dir, "file") == 0,
		"a tree is made");
	tap_ok(&t, opened(dir, "in/../../../file") == 0 && opened(dir, "/file") == 0,
		"'..' and '/' stay inside the directory");
	tap_ok(&t, opened(dir, "etc/passwd") == -ENOENT && opened(dir, "../../etc/passwd") == -ENOENT,
		"what is outside is not there");
	tap_ok(&t,
		symlinkat("/proc/self/root", dir, "magic") == 0 && opened(dir, "magic/etc/passwd") == -ENOENT,
		"an absolute link is one inside the directory");
	pid = rename_forever(dir);
	for (int i = 0; i < OPENS; i++)
		failed += opened(dir, "in/../in/../in/../file") != 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tap_ok(&t, pid > 0 && failed == 0, "while files are renamed, %d of %d opens with '..' fail", failed,
		OPENS);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	tap_ok(&t, close(dir) == 0 && system(command) == 0, "the tree is removed");
	return tap_done(&t);
}
