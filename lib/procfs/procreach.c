/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/procreach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

static int list(uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx)
{
	char path[64] = "/proc";
	struct dirent *d;
	DIR *dir;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		uint32_t number = procfile_number(d->d_name);

		if (number)
			fn(ctx, number);
	}
	closedir(dir);
	return 0;
}

int procreach_list(struct looker *l, uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx)
{
	int rc = looker_list(l, pid, fn, ctx);

	return rc == -ENOTCONN ? list(pid, fn, ctx) : rc;
}

ssize_t procreach_text(struct looker *l, uint32_t pid, uint32_t tid, enum procfile f, char *text, size_t cap)
{
	_cleanup_close_ int fd = -1;
	struct looker_texts asked;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", pid, tid, procfile_name(f));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -errno : read(fd, text, cap);
	if (fd >= 0)
		return n < 0 ? -errno : n;
	if (looker_files(l, pid, tid, 1u << f, false, &asked) != 0)
		return n;
	n = asked.len[f];
	if (n > 0) {
		n = MIN(n, (ssize_t)cap);
		memcpy(text, asked.text[f], (size_t)n);
	}
	return n;
}
