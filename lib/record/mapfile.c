/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mapfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sysmacros.h>

#define CHANGE_TICK_NS                                                                                       \
	UINT64_C(10000000) /* a file's times are those of the timer's last tick, 100 a second or more */

bool mapfile_is_pseudo(const char *path)
{
	return path[0] != '/' || strncmp(path, "//", 2) == 0;
}

/* Open PATH for reading if it is a regular file: looked at first, as opening a device can have effects. */
static int open_regular(const char *path, struct stat *st)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	char again[64];
	int rc;

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) != 0)
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -EMEDIUMTYPE;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	rc = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return rc < 0 ? -errno : rc;
}

static bool same_inode(const struct stat *st, const struct procmap *m)
{
	return st->st_ino == m->inode;
}

int mapfile_open(uint32_t pid, const struct procmap *m, struct stat *st)
{
	_cleanup_free_ char *path = NULL;
	char link[96];
	int fd, first;

	snprintf(link, sizeof(link), "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)m->start,
		(unsigned long long)m->end);
	first = fd = open_regular(link, st);
	if (fd >= 0 || fd == -EMEDIUMTYPE)
		return fd;
	if (asprintf(&path, "/proc/%u/root%s", pid, m->path) < 0)
		return -ENOMEM;
	fd = open_regular(path, st);
	if (fd < 0)
		fd = open_regular(m->path, st);
	if (fd >= 0 && same_inode(st, m))
		return fd;
	if (fd >= 0) {
		close(fd);
		return -ESTALE; /* another file has taken the path */
	}
	return first == -ENOENT || first == -ESRCH ? fd : first;
}

int mapfile_stat(uint32_t pid, const struct procmap *m, struct stat *st)
{
	_cleanup_free_ char *path = NULL;
	char link[96];
	int rc;

	snprintf(link, sizeof(link), "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)m->start,
		(unsigned long long)m->end);
	if (stat(link, st) == 0)
		return 0;
	rc = -errno;
	if (asprintf(&path, "/proc/%u/root%s", pid, m->path) < 0)
		return -ENOMEM;
	if ((stat(path, st) == 0 || stat(m->path, st) == 0) && same_inode(st, m))
		return 0;
	return rc;
}

int mapfile_stat_then(uint32_t pid, const struct procmap *m, uint64_t made_ns, struct stat *st)
{
	uint64_t changed_ns;
	char link[96];

	snprintf(link, sizeof(link), "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)m->start,
		(unsigned long long)m->end);
	if (stat(link, st) == 0 && same_inode(st, m))
		return 0;
	if (stat(m->path, st) != 0)
		return -errno;
	changed_ns = (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec;
	if (!same_inode(st, m) || st->st_dev != makedev(m->dev_major, m->dev_minor) ||
		changed_ns + CHANGE_TICK_NS > made_ns)
		return -ESTALE;
	return 0;
}

bool mapfile_is_gone(uint32_t pid, const struct procmap *m)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (m->deleted)
		return true;
	if (asprintf(&path, "/proc/%u/root%s", pid, m->path) < 0)
		return false;
	return stat(path, &st) == 0 && !same_inode(&st, m);
}

const uint8_t *mapfile_vdso(size_t *len)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);

	*len = image ? 2 * (size_t)sysconf(_SC_PAGESIZE) : 0;
	return image;
}
