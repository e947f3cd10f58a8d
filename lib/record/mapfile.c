/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/mapfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define CHANGE_TICK_NS                                                                                       \
	UINT64_C(10000000) /* a file's times are those of the timer's last tick, 100 a second or more */

bool mapfile_is_pseudo(const char *path)
{
	return path[0] != '/' || strncmp(path, "//", 2) == 0;
}

/* What FD, of O_PATH, is of, for reading. */
static int reopen(int fd)
{
	char again[64];
	int ret;

	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	ret = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return ret < 0 ? -errno : ret;
}

/* Open PATH for reading if it is a regular file: looked at first, as opening a device can have effects. */
static int open_regular(const char *path, struct stat *st)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0 || fstat(fd, st) != 0)
		return -errno;
	return S_ISREG(st->st_mode) ? reopen(fd) : -EMEDIUMTYPE;
}

/*
 * The file of M, of O_PATH, by its path as we see it; -1 where that is not
 * certainly the file. Most files can be had that way by anybody, and the
 * opener need not be asked. The path is of another process's choice: it is
 * followed only as far as nothing has to be waited for, which kernels before 5.12 cannot do.
 */
static int find_here(const struct procmap *m, struct stat *st)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED };
	_cleanup_close_ int fd =
		m->deleted ? -1 : (int)syscall(SYS_openat2, AT_FDCWD, m->path, &how, sizeof(how));
	struct statx sx;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_TYPE, &sx) != 0 ||
		!S_ISREG(sx.stx_mode) || sx.stx_ino != m->inode || sx.stx_dev_major != m->dev_major ||
		sx.stx_dev_minor != m->dev_minor || fstat(fd, st) != 0)
		return -1;
	return TAKE_FD(fd);
}

static bool same_inode(const struct stat *st, const struct procmap *m)
{
	return st->st_ino == m->inode;
}

/* The opener's answer, unless there is no opener. */
static int either(int own, int asked)
{
	return asked == -ENOTCONN ? own : asked;
}

static void put_link(char link[96], uint32_t pid, const struct procmap *m)
{
	snprintf(link, 96, "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)m->start,
		(unsigned long long)m->end);
}

static int open_mapping(struct opener *o, uint32_t pid, const struct procmap *m, struct stat *st)
{
	char link[96];
	int fd;

	put_link(link, pid, m);
	fd = open_regular(link, st);
	return fd >= 0 || fd == -EMEDIUMTYPE ? fd : either(fd, opener_mapping(o, pid, m->start, m->end, st));
}

static int stat_mapping(struct opener *o, uint32_t pid, const struct procmap *m, struct stat *st)
{
	char link[96];

	put_link(link, pid, m);
	return stat(link, st) == 0 ? 0 : either(-errno, opener_mapping_stat(o, pid, m->start, m->end, st));
}

/* PATH below the root of PID, 0 = ours. */
static int open_path(struct opener *o, uint32_t pid, const char *path, struct stat *st)
{
	_cleanup_free_ char *full = NULL;
	int fd;

	if (pid && asprintf(&full, "/proc/%u/root%s", pid, path) < 0)
		return -ENOMEM;
	fd = open_regular(pid ? full : path, st);
	return fd >= 0 || fd == -EMEDIUMTYPE ? fd : either(fd, opener_path(o, pid, path, st));
}

static int stat_path(struct opener *o, uint32_t pid, const char *path, struct stat *st)
{
	_cleanup_free_ char *full = NULL;

	if (pid && asprintf(&full, "/proc/%u/root%s", pid, path) < 0)
		return -ENOMEM;
	return stat(pid ? full : path, st) == 0 ? 0 : either(-errno, opener_path_stat(o, pid, path, st));
}

int mapfile_open(struct opener *o, uint32_t pid, const struct procmap *m, struct stat *st)
{
	_cleanup_close_ int here = find_here(m, st);
	int fd = here < 0 ? here : reopen(here), first;

	if (fd >= 0)
		return fd;
	first = fd = open_mapping(o, pid, m, st);
	if (fd >= 0 || fd == -EMEDIUMTYPE)
		return fd;
	fd = open_path(o, pid, m->path, st);
	if (fd < 0)
		fd = open_path(o, 0, m->path, st);
	if (fd >= 0 && same_inode(st, m))
		return fd;
	if (fd >= 0) {
		close(fd);
		return -ESTALE; /* another file has taken the path */
	}
	return first == -ENOENT || first == -ESRCH ? fd : first;
}

int mapfile_stat(struct opener *o, uint32_t pid, const struct procmap *m, struct stat *st)
{
	_cleanup_close_ int here = find_here(m, st);
	int rc = here < 0 ? stat_mapping(o, pid, m, st) : 0;

	if (!rc)
		return 0;
	if ((stat_path(o, pid, m->path, st) == 0 || stat_path(o, 0, m->path, st) == 0) && same_inode(st, m))
		return 0;
	return rc;
}

static uint64_t changed_ns(const struct stat *st)
{
	return (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec;
}

/* Had the file of status ST changed for the last time when M was made? */
static bool is_older(const struct stat *st, const struct procmap *m, uint64_t made_ns)
{
	return same_inode(st, m) && st->st_dev == makedev(m->dev_major, m->dev_minor) &&
	       changed_ns(st) + CHANGE_TICK_NS <= made_ns;
}

static struct mapfile_proof *place_of(
	struct mapfile_proof *proofs, uint32_t pid, const struct procmap *m, uint64_t made_ns)
{
	uint64_t h = (m->start ^ (uint64_t)pid << 40 ^ made_ns) * 0x9e3779b97f4a7c15u;

	return &proofs[h >> 32 & (MAPFILE_PROOFS - 1)];
}

/* Is what stands at the path of M still what P says? It could be looked at without waiting once. */
static bool is_proven(const struct mapfile_proof *p, uint32_t pid, const struct procmap *m, uint64_t made_ns,
	struct stat *st)
{
	return p->pid == pid && p->start == m->start && p->made_ns == made_ns && p->inode == m->inode &&
	       p->dev == makedev(m->dev_major, m->dev_minor) && stat(m->path, st) == 0 && same_inode(st, m) &&
	       st->st_dev == p->dev && changed_ns(st) == p->changed_ns;
}

int mapfile_stat_then(struct opener *o, struct mapfile_proof proofs[MAPFILE_PROOFS], uint32_t pid,
	const struct procmap *m, uint64_t made_ns, struct stat *st)
{
	struct mapfile_proof *p = place_of(proofs, pid, m, made_ns);
	_cleanup_close_ int here = -1;
	struct stat named = { 0 };
	int rc;

	if (is_proven(p, pid, m, made_ns, st))
		return 0;
	here = find_here(m, &named);
	*st = named;
	rc = here >= 0 && is_older(st, m, made_ns) ? 0 : stat_mapping(o, pid, m, st);
	if (!rc && same_inode(st, m)) {
		if (here >= 0)
			*p = (struct mapfile_proof){ m->start, made_ns, m->inode, changed_ns(&named),
				named.st_dev, pid, 0 };
		return 0;
	}
	rc = stat_path(o, 0, m->path, st);
	if (rc)
		return rc;
	return is_older(st, m, made_ns) ? 0 : -ESTALE;
}

bool mapfile_is_gone(struct opener *o, uint32_t pid, const struct procmap *m)
{
	_cleanup_close_ int here = -1;
	struct stat st;

	if (m->deleted)
		return true;
	/* a link behind the path would have another inode, and the mapping's path has none */
	here = pid ? find_here(m, &st) : -1;
	return here < 0 && (stat_path(o, pid, m->path, &st) == 0 && !same_inode(&st, m));
}

const uint8_t *mapfile_vdso(size_t *len)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);

	*len = image ? 2 * (size_t)sysconf(_SC_PAGESIZE) : 0;
	return image;
}
