/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/result.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int refuse_terminal(const char *what, const struct result_type *type, struct err *e)
{
	err_set(e, -EINVAL, "%s is a terminal: %s is not written to one", what, type->name);
	err_hint(e, "give -o FILE, or send standard output to a file or a pipe");
	return -EINVAL;
}

int result_file_stdout(const struct result_type *type, struct err *e)
{
	int fd;

	if (isatty(STDOUT_FILENO))
		return refuse_terminal("standard output", type, e);
	fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return fd >= 0 ? fd : err_sys(e, -errno, "cannot write to standard output");
}

static int refuse_existing(const char *path, const char *is, const char *what, struct err *e)
{
	err_set(e, -EEXIST, "'%s' exists and is %s%s", path, is, what);
	err_hint(e, "choose another name, or --force to write to it all the same");
	return -EEXIST;
}

/* Is the regular file PATH empty, or of TYPE? */
static bool is_ours(const char *path, const struct result_type *type)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char begin[64];
	ssize_t n = fd >= 0 ? pread(fd, begin, MIN(type->magic_len, sizeof(begin)), 0) : -1;

	return n == 0 ||
	       (n > 0 && (size_t)n == type->magic_len && memcmp(begin, type->magic, (size_t)n) == 0);
}

/*
 * Remove the name PATH: -ENOENT once it is gone. If the name has to stay (a mount
 * point, a directory that may not be changed), truncate the file if it is our
 * own, and return a descriptor for it.
 */
static int make_way(const char *path, const struct stat *st, struct err *e)
{
	_cleanup_close_ int fd = -1;
	struct stat now;
	int code;

	if (unlink(path) == 0 || errno == ENOENT)
		return -ENOENT;
	code = -errno;
	fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || st->st_uid != geteuid() || fstat(fd, &now) != 0 || now.st_ino != st->st_ino ||
		now.st_dev != st->st_dev || fchmod(fd, 0600) != 0 || ftruncate(fd, 0) != 0)
		return err_sys(e, code, "cannot replace '%s'", path);
	return TAKE_FD(fd);
}

/* Opening a FIFO waits for its reader, as in every program. */
static int open_special(const char *path, const struct result_type *type, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, -errno, "cannot write to '%s'", path);
	if (isatty(fd))
		return refuse_terminal("the file", type, e);
	return TAKE_FD(fd);
}

/* Is the character device PATH a terminal? False if it cannot be opened. */
static bool is_terminal(const char *path)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0 && isatty(fd);
}

/* Deal with PATH, which exists. Returns a descriptor, -ENOENT once it is gone, or an error. */
static int replace(
	const char *path, const struct stat *st, bool force, const struct result_type *type, struct err *e)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		if (!force && !is_ours(path, type))
			return refuse_existing(path, "not ", type->name, e);
		return make_way(path, st, e);
	case S_IFLNK:
		err_set(e, -ELOOP, "'%s' is a symbolic link, which is not followed", path);
		err_hint(e, "name the file itself, or '-o -' for standard output");
		return -ELOOP;
	case S_IFIFO:
		return force ? open_special(path, type, e) : refuse_existing(path, "", "a FIFO", e);
	case S_IFCHR:
		if (is_terminal(path))
			return refuse_terminal("the file", type, e);
		return force ? open_special(path, type, e) : refuse_existing(path, "", "a device", e);
	case S_IFDIR:
		return err_sys(e, -EISDIR, "cannot write to '%s'", path);
	default:
		return err_set(e, -EINVAL, "'%s' is not a file that %s can be written to", path, type->name);
	}
}

int result_file_create(const char *path, bool force, const struct result_type *type, struct err *e)
{
	/* an existing file is removed; do not loop forever if someone keeps putting it back */
	for (int attempt = 0; attempt < 16; attempt++) {
		_cleanup_close_ int fd =
			open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		struct stat st;
		int code;

		if (fd >= 0 && fchmod(fd, 0600) != 0)
			return err_sys(e, -errno, "cannot make '%s' private", path);
		if (fd >= 0)
			return TAKE_FD(fd);
		if (errno != EEXIST)
			return err_sys(e, -errno, "cannot create '%s'", path);
		if (lstat(path, &st) != 0)
			continue;
		code = replace(path, &st, force, type, e);
		if (code != -ENOENT)
			return code;
	}
	return err_set(e, -EEXIST, "'%s' is put there again each time it is replaced", path);
}

int result_file_begin(
	const char *path, bool force, const struct result_type *type, struct result_file *ret, struct err *e)
{
	struct stat st;

	*ret = (struct result_file){ .fd = -1, .fresh = lstat(path, &st) != 0 };
	if (!ret->fresh && !S_ISREG(st.st_mode)) {
		ret->fd = replace(path, &st, force, type, e);
		return MIN(ret->fd, 0);
	}
	if (!ret->fresh && !force && !is_ours(path, type))
		return refuse_existing(path, "not ", type->name, e);
	if (asprintf(&ret->temp, "%s.XXXXXX", path) < 0) {
		ret->temp = NULL;
		return err_nomem(e, "a file name");
	}
	ret->fd = mkostemp(ret->temp, O_CLOEXEC);
	if (ret->fd >= 0)
		return 0;
	free(ret->temp);
	ret->temp = NULL;
	return err_sys(e, -errno, "cannot create '%s'", path);
}

/* If the name was free, do not replace a file that got it meanwhile, if the file system supports that. */
static int take_name(const struct result_file *f, const char *path)
{
	if (f->fresh && renameat2(AT_FDCWD, f->temp, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
		return 0;
	if (f->fresh && errno != EINVAL && errno != ENOSYS)
		return -errno;
	return rename(f->temp, path) == 0 ? 0 : -errno;
}

int result_file_commit(struct result_file *f, const char *path, struct err *e)
{
	int rc = close(f->fd) == 0 ? 0 : -errno;

	f->fd = -1;
	if (!rc && f->temp)
		rc = take_name(f, path);
	if (rc)
		return err_sys(e, rc, "cannot write '%s'", path);
	free(f->temp);
	f->temp = NULL;
	return 0;
}

void result_file_close(struct result_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->temp)
		unlink(f->temp);
	free(f->temp);
	*f = (struct result_file){ .fd = -1 };
}

static int open_scratch(const char *dir)
{
	_cleanup_free_ char *path = NULL;
	int fd = open(dir, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);

	/* a file system without such files */
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd < 0 ? -errno : fd;
	if (asprintf(&path, "%s/.scratch.XXXXXX", dir) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

int result_file_scratch(const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/'), *tmp = getenv("TMPDIR");
	_cleanup_free_ char *dir = strcmp(path, "-") == 0 ? strdup(tmp && *tmp ? tmp : "/tmp")
				   : !slash               ? strdup(".")
							  : strndup(path, MAX((size_t)(slash - path), 1));
	_cleanup_close_ int fd = -1;

	if (!dir)
		return err_nomem(e, "a file name");
	fd = open_scratch(dir);
	if (fd < 0)
		return err_sys(e, fd, "cannot create a file in '%s'", dir);
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0) {
		err_sys(e, -errno, "the file system of '%s' cannot release parts of a file", dir);
		err_hint(e, "ext4, XFS, Btrfs and tmpfs can");
		return e ? e->code : -EOPNOTSUPP;
	}
	return TAKE_FD(fd);
}
