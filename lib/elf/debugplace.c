/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/debugplace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

DEFINE_CLEANUP(struct elffile *, elffile_close);

/* O_PATH: nothing happens to what is there. */
static int find(int root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = root >= 0 ? syscall(SYS_openat2, root, path, &how, sizeof(how))
			    : open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* Where the kernel says that FD is. */
static bool name_of(int fd, char *ret, size_t cap)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, cap);
	if (n <= 0 || (size_t)n >= cap || ret[0] != '/')
		return false;
	ret[n] = 0;
	return true;
}

int debugplace_open(int root, const char *path, struct elffile **ret, struct err *e)
{
	CLEANUP(elffile_close_p) struct elffile *f = NULL;
	_cleanup_close_ int fd = find(root, path);
	struct stat st;
	char link[64];
	int rc;

	if (fd < 0)
		return err_sys(e, fd, "cannot be opened");
	if (fstat(fd, &st) != 0)
		return err_sys(e, -errno, "cannot be examined");
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "is no regular file");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	rc = elffile_open(AT_FDCWD, link, false, &f, e);
	if (rc)
		return rc;
	*ret = TAKE_PTR(f);
	return 0;
}

bool debugplace_real(int root, const char *path, char *ret, size_t cap)
{
	_cleanup_close_ int fd = find(root, path);
	char top[PATH_MAX];
	size_t n;

	if (fd < 0 || !name_of(fd, ret, cap))
		return false;
	if (root < 0)
		return true;
	if (!name_of(root, top, sizeof(top)))
		return false;
	n = strcmp(top, "/") == 0 ? 0 : strlen(top);
	if (strncmp(ret, top, n) != 0 || ret[n] != '/')
		return false;
	memmove(ret, ret + n, strlen(ret + n) + 1);
	return true;
}

void debugplace_show(int root, const char *path, char *ret, size_t cap)
{
	char top[PATH_MAX] = "";

	if (root >= 0 && (!name_of(root, top, sizeof(top)) || strcmp(top, "/") == 0))
		top[0] = 0;
	snprintf(ret, cap, "%s%s", top, path);
}

bool debugplace_same(const struct elffile *a, const struct elffile *b)
{
	struct stat x, y;

	return a->fd >= 0 && b->fd >= 0 && fstat(a->fd, &x) == 0 && fstat(b->fd, &y) == 0 &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
