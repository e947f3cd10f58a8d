/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/maps.h"
#include "system/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define MAPS_MAX (64u << 20)

/* Undo \012, the only escape that seq_file uses in a path. */
static void unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

bool procmaps_parse(char *line, struct procmap *m)
{
	unsigned long long start, end, offset, inode;
	unsigned int major, minor;
	char perms[5];
	int at = 0;
	char *path;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, perms, &offset, &major, &minor,
		    &inode, &at) != 7 ||
		!at || strlen(perms) != 4 || start >= end)
		return false;
	*m = (struct procmap){ .start = start,
		.end = end,
		.offset = offset,
		.inode = inode,
		.dev_major = major,
		.dev_minor = minor };
	m->prot = (perms[0] == 'r' ? PROT_READ : 0u) | (perms[1] == 'w' ? PROT_WRITE : 0u) |
		  (perms[2] == 'x' ? PROT_EXEC : 0u);
	m->flags = perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	path = line + at;
	m->deleted = inode && procinfo_strip_deleted(path);
	unescape(path);
	m->path = path;
	return true;
}

/* Read all of FD, which reports no size, into *RET. */
static int read_whole(int fd, char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t cap = 0, used = 0;
	ssize_t n = 1;

	while (n) {
		if (base_grow(&text, &cap, used + 4096, 1) != 0)
			return -ENOMEM;
		n = read(fd, text + used, cap - used - 1);
		if (n < 0 && errno != EINTR)
			return -errno;
		used += n > 0 ? (size_t)n : 0;
		if (used > MAPS_MAX)
			return -EFBIG;
	}
	text[used] = '\0';
	*ret = TAKE_PTR(text);
	return 0;
}

int procmaps_each_of(
	int fd, uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	int rc = fd < 0 ? fd : read_whole(fd, &text);

	if (rc)
		return err_sys(e, rc == -ENOENT ? -ESRCH : rc, "cannot read '/proc/%u/maps'", pid);
	for (char *line = text, *next; line && *line && !rc; line = next) {
		struct procmap m;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (procmaps_parse(line, &m))
			rc = fn(ctx, &m);
	}
	return rc;
}

int procmaps_each(uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx, struct err *e)
{
	char path[64];
	_cleanup_close_ int fd = -1;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return procmaps_each_of(fd < 0 ? -errno : fd, pid, fn, ctx, e);
}
