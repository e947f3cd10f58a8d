/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/result.h"
#include "base/loader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

/* Another process writes to the regular file PATH: see result_claim(). */
static int refuse_claimed(const char *path, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fd < 0 || fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
		return 0;
	/* 0: it is in another PID namespace; -1: on another machine, or not known */
	if (lock.l_pid > 0)
		err_set(e, -EBUSY, "process %d writes to '%s'", (int)lock.l_pid, path);
	else
		err_set(e, -EBUSY, "another process writes to '%s'", path);
	err_hint(e, "choose another name with -o FILE, or end that process first");
	return -EBUSY;
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
	int rc;

	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		rc = refuse_claimed(path, e);
		if (rc)
			return rc;
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

/* The number in the environment variable NAME; UINT32_MAX if it is not one. */
static uint32_t id_in(const char *name)
{
	const char *text = getenv(name);
	unsigned long id;
	char *end;

	if (!text || strspn(text, "0123456789") != strlen(text) || !*text)
		return UINT32_MAX;
	errno = 0;
	id = strtoul(text, &end, 10);
	return errno || id > UINT32_MAX ? UINT32_MAX : (uint32_t)id;
}

/*
 * If root runs this program by sudo(8), give FD, a new file that no one else has opened, to the user who
 * called it: SUDO_UID and SUDO_GID, if there is such a user. Otherwise it stays root's.
 */
static void give_to_caller(int fd)
{
	const uint32_t uid = id_in("SUDO_UID"), gid = id_in("SUDO_GID");

	uid_t real, effective, saved;

	/* a set-user-ID program of root has another real user, and root as the saved one */
	if (getresuid(&real, &effective, &saved) != 0 || effective != 0 || (real != 0 && saved == 0))
		return;
	if (uid && uid != UINT32_MAX && gid != UINT32_MAX && loader_user(uid))
		(void)!fchown(fd, uid, gid);
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
		if (fd >= 0) {
			give_to_caller(fd);
			return TAKE_FD(fd);
		}
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

/* What the kernel calls FD now, after renames; NULL if that is not known. A file without a name has an
 * ending. */
static char *path_of(int fd)
{
	char link[sizeof("/proc/self/fd/") + 16], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	return n > 0 && n < (ssize_t)sizeof(path) ? strndup(path, (size_t)n) : NULL;
}

int result_claim(int fd, const char *path, struct result_claim *ret, struct err *e)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat st;

	*ret = (struct result_claim){ 0 };
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	/* other errors: the file system has no locks */
	if (fcntl(fd, F_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES))
		return err_set(e, -EBUSY, "another process writes to '%s', since a moment ago", path);
	ret->linked = st.st_nlink > 0;
	ret->path = path_of(fd);
	return 0;
}

void result_claim_free(struct result_claim *c)
{
	free(c->path);
	*c = (struct result_claim){ 0 };
}

bool result_claim_linked(int fd, const struct result_claim *c)
{
	struct stat st;

	return !c->linked || fstat(fd, &st) != 0 || st.st_nlink;
}

/* Whether the kernel's PATH of a file that has a link is that link. A recorder may be another user by now. */
static bool is_there(const char *path)
{
	const char *end = strrchr(path, ' ');

	return access(path, F_OK) == 0 || (errno == EACCES && !(end && strcmp(end, " (deleted)") == 0));
}

int result_claim_check(int fd, const char *path, const struct result_claim *c, char **now, struct err *e)
{
	_cleanup_free_ char *is = path_of(fd);
	struct stat mine, named;
	bool same;

	*now = NULL;
	if (!c->linked || fstat(fd, &mine) != 0)
		return 0;
	/* the name may be out of this process's reach by now: then its link in /proc says what became of it
	 */
	if (lstat(path, &named) == 0)
		same = named.st_dev == mine.st_dev && named.st_ino == mine.st_ino;
	else
		same = mine.st_nlink && (!c->path || !is || strcmp(is, c->path) == 0);
	if (same)
		return 0;
	if (!mine.st_nlink)
		return err_set(e, -ESTALE,
			"'%s' was deleted or replaced during the recording: what was written to it is lost",
			path);
	/* it has another link if the name that it was opened by is gone */
	if (!is || (c->path && strcmp(is, c->path) == 0) || strncmp(is, "(unreachable)", 13) == 0 ||
		!is_there(is)) {
		*now = strdup("(renamed)");
		return err_set(
			e, -ESTALE, "'%s' was renamed during the recording: its name is not known", path);
	}
	*now = TAKE_PTR(is);
	return err_set(e, -ESTALE, "'%s' was renamed during the recording: it is '%s' now", path, *now);
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
