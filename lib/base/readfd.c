/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/readfd.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* fstat(3) may be a call that takes a path, which whoever may open nothing is denied. */
static int look_at(int fd, struct stat *st)
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

	if (look_at(fd, &st) != 0)
		return err_sys(e, -errno, "cannot look at a file");
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
