/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int root_open(const char *prefix, struct root *ret, struct err *e)
{
	const char *dir = prefix && *prefix ? prefix : "/";
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, -errno, "cannot open the directory '%s'", dir);
	ret->fd = fd;
	ret->live = strcmp(dir, "/") == 0;
	snprintf(ret->prefix, sizeof(ret->prefix), "%s", dir);
	ret->requested = NULL;
	return 0;
}

void root_close(struct root *r)
{
	if (r->fd > 0)
		close(r->fd);
	r->fd = -1;
}

#define TRIES 1000

int open_in_root(int root, const char *path, int flags)
{
	const struct open_how how = { .flags = (unsigned int)flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd = -1;

	/* openat2(2): EAGAIN if anything on the machine was renamed or mounted while a ".." was followed */
	for (int i = 0; i < TRIES; i++) {
		fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : fd;
}

/*
 * In a recorded tree an absolute link refers to the recorded machine, and no
 * link may lead out of the tree. A kernel before 5.6 has no openat2(2): there,
 * at least the last component is not followed.
 */
static int open_inside(const struct root *r, const char *path, int flags)
{
	int fd = open_in_root(r->fd, path, flags);

	if (fd == -ENOSYS)
		return openat(r->fd, path, flags | O_NOFOLLOW);
	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

static void note_read(const struct root *r, const char *path)
{
	if (r->requested)
		r->requested(r->requested_ctx, path);
}

int root_openat(const struct root *r, const char *path, int flags, struct err *e)
{
	int fd = r->live ? openat(r->fd, path, flags | O_CLOEXEC) : open_inside(r, path, flags | O_CLOEXEC);

	note_read(r, path);
	if (fd < 0)
		return err_sys(e, -errno, "cannot open '%s/%s'", r->live ? "" : r->prefix, path);
	return fd;
}

/* A FIFO or a device in place of a file could block forever. */
static int require_regular(const struct root *r, const char *path, int fd, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_sys(e, -errno, "cannot read '%s/%s'", r->live ? "" : r->prefix, path);
	if (S_ISDIR(st.st_mode))
		return err_sys(e, -EISDIR, "cannot read '%s/%s'", r->live ? "" : r->prefix, path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "'%s/%s' is not a regular file", r->live ? "" : r->prefix, path);
	return 0;
}

int root_read(const struct root *r, const char *path, size_t max, char **ret, size_t *len, struct err *e)
{
	_cleanup_close_ int fd = root_openat(r, path, O_RDONLY | O_NONBLOCK, e);
	size_t n;
	int rc;

	if (fd < 0)
		return fd;
	rc = require_regular(r, path, fd, e);
	if (rc)
		return rc;
	rc = base_read(fd, max, ret, &n);
	if (rc == -ENOMEM)
		return err_nomem(e, path);
	if (rc)
		return err_sys(e, rc, "cannot read '%s/%s'", r->live ? "" : r->prefix, path);
	if (len)
		*len = n;
	return 0;
}

int root_line(const struct root *r, const char *path, char *buf, size_t cap, struct err *e)
{
	_cleanup_free_ char *data = NULL;
	int rc = root_read(r, path, 1 << 20, &data, NULL, e);

	if (rc)
		return rc;
	data[strcspn(data, "\n")] = '\0';
	snprintf(buf, cap, "%s", data);
	return 0;
}

bool root_exists(const struct root *r, const char *path)
{
	note_read(r, path);
	return faccessat(r->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool root_link(const struct root *r, const char *path, char *buf, size_t cap)
{
	ssize_t n = readlinkat(r->fd, path, buf, cap - 1);

	note_read(r, path);
	buf[MAX(n, 0)] = '\0';
	return n >= 0;
}

/* fstat(3) may use a system call that takes a path, which a process that may not open files is denied. */
static int stat_file(int fd, struct stat *st)
{
#ifdef SYS_fstat
	return (int)syscall(SYS_fstat, fd, st);
#else
	return fstat(fd, st);
#endif
}

int readfd_all(int fd, uint64_t max, char **ret, size_t *len, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t size, done = 0;
	ssize_t n = 1;

	if (stat_file(fd, &st) != 0)
		return err_sys(e, -errno, "cannot examine a file");
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EMEDIUMTYPE, "not a regular file");
	if (st.st_size < 0 || (uint64_t)st.st_size > max)
		return err_set(e, -EFBIG, "more than %llu bytes", (unsigned long long)max);
	size = (size_t)st.st_size;
	text = malloc(size + 1);
	if (!text)
		return err_nomem(e, "a file's bytes");
	while (done < size && n) {
		n = pread(fd, text + done, size - done, (off_t)done);
		if (n < 0 && errno != EINTR)
			return err_sys(e, -errno, "cannot read a file");
		done += n > 0 ? (size_t)n : 0;
	}
	text[done] = '\0';
	*len = done;
	*ret = TAKE_PTR(text);
	return 0;
}

int readfd_at(int fd, void *to, size_t len, uint64_t at)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, (char *)to + done, len - done, (off_t)(at + done));

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return n < 0 ? -errno : -EIO;
		done += (size_t)MAX(n, 0);
	}
	return 0;
}

int writefd_at(int fd, const void *bytes, size_t len, uint64_t at)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(fd, (const char *)bytes + done, len - done, (off_t)(at + done));

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return n < 0 ? -errno : -EIO;
		done += (size_t)MAX(n, 0);
	}
	return 0;
}
