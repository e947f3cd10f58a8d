/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/kallcopy.h"
#include "symbols/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

DEFINE_CLEANUP(struct kallsyms *, kallsyms_free);

/* A file beside the one to be made; it goes unless it was renamed. */
struct temp {
	char path[PATH_MAX];
	int fd;
};

static void temp_release(struct temp *t)
{
	if (t->fd >= 0)
		close(t->fd);
	if (t->path[0])
		unlink(t->path);
}

static int temp_make(struct temp *t, const char *to, struct err *e)
{
	int err;

	if ((size_t)snprintf(t->path, sizeof(t->path), "%s.XXXXXX", to) >= sizeof(t->path))
		return t->path[0] = '\0', err_sys(e, -ENAMETOOLONG, "cannot create '%s'", to);
	t->fd = mkostemp(t->path, O_CLOEXEC); /* O_EXCL, 0600 */
	if (t->fd >= 0)
		return 0;
	err = -errno;
	t->path[0] = '\0';
	return err_sys(e, err, "cannot create '%s'", to);
}

/* The file at TO may go. */
static int check_target(const char *to, bool force, struct err *e)
{
	CLEANUP(kallsyms_free_p) struct kallsyms *ks = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;
	int err;

	if (lstat(to, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(e, -errno, "cannot create '%s'", to);
	if (S_ISLNK(st.st_mode)) {
		err_set(e, -ELOOP, "'%s' is a symbolic link, which is never followed", to);
		err_hint(e, "give the file that is meant, or remove the link");
		return -ELOOP;
	}
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "'%s' is not a regular file", to);
	if (force)
		return 0;
	fd = open(to, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return err_sys(e, -errno, "cannot open '%s'", to);
	err = kallsyms_load_fd(fd, to, &ks, NULL);
	if (err == 0 || err == -EACCES) /* a copy whose addresses are zero is one */
		return 0;
	err_set(e, -EEXIST, "'%s' exists and is no copy of /proc/kallsyms", to);
	err_hint(e, "--force overwrites it");
	return -EEXIST;
}

static int write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0)
			p += done, n -= (size_t)done;
	}
	return 0;
}

static int copy(int from_fd, const char *from, int to_fd, const char *to, struct err *e)
{
	_cleanup_free_ char *piece = malloc(128u << 10);
	ssize_t got;
	int err;

	if (!piece)
		return err_nomem(e, "a copy");
	while ((got = read(from_fd, piece, 128u << 10)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, -errno, "cannot read '%s'", from);
		err = write_all(to_fd, piece, (size_t)got);
		if (err)
			return err_sys(e, err, "cannot write '%s'", to);
	}
	return 0;
}

/* What was copied is what is checked: /proc/kallsyms may differ by the next reading. */
static int check_copy(int fd, const char *from, struct err *e)
{
	CLEANUP(kallsyms_free_p) struct kallsyms *ks = NULL;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, -errno, "cannot read back the copy of '%s'", from);
	return kallsyms_load_fd(fd, from, &ks, e);
}

int kallcopy_save(const char *from, const char *to, bool force, struct err *e)
{
	CLEANUP(temp_release) struct temp temp = { .fd = -1 };
	_cleanup_close_ int fd = -1;
	int err = check_target(to, force, e);

	if (err)
		return err;
	if (!from)
		from = "/proc/kallsyms";
	fd = open(from, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(e, -errno, "cannot open '%s'", from);
	err = temp_make(&temp, to, e);
	if (!err)
		err = copy(fd, from, temp.fd, to, e);
	if (!err)
		err = check_copy(temp.fd, from, e);
	if (err)
		return err;
	if (fsync(temp.fd) < 0 ||
		rename(temp.path, to) < 0) /* a link planted meanwhile is replaced, not followed */
		return err_sys(e, -errno, "cannot write '%s'", to);
	temp.path[0] = '\0';
	return 0;
}
