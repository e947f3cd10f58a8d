/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fs - reading files: under a prefix, or from a descriptor.
 */
#ifndef STACKTOOLS_BASE_FS_H
#define STACKTOOLS_BASE_FS_H

#include "base/err.h"

/*
 * root - reading /proc, /sys and /boot under a prefix, so that a tree recorded
 * on another machine can be a test fixture.
 *
 * PATH is relative to the prefix and has no leading slash
 * ("proc/sys/kernel/osrelease"). Under a prefix other than "/", symbolic links
 * are followed as on the recorded machine: none leads out of the tree.
 */

struct root {
	int fd; /* of the prefix directory */
	bool live; /* the prefix is "/": reads this machine */
	char prefix[256]; /* for messages */
	void (*requested)(
		void *ctx, const char *path); /* called for every path that is accessed; may be NULL */
	void *requested_ctx;
};

/* PREFIX NULL or "/" is this machine. On success release with root_close(). */
int root_open(const char *prefix, struct root *ret, struct err *e);
void root_close(struct root *r); /* a zeroed or closed root is fine */

/* Like open(2), with O_CLOEXEC added; a descriptor or -errno. */
int root_openat(const struct root *r, const char *path, int flags, struct err *e);

/*
 * Read all of PATH into *RET, a NUL-terminated string (free it), and its length
 * into *LEN (may be NULL). -EFBIG beyond MAX bytes. A file in /proc that reports
 * no size is read to its end. Never blocks: -EISDIR for a directory, -EINVAL for
 * another file that is not regular.
 */
int root_read(const struct root *r, const char *path, size_t max, char **ret, size_t *len, struct err *e);

/* Read the first line of PATH into BUF, without its newline and cut to CAP. */
int root_line(const struct root *r, const char *path, char *buf, size_t cap, struct err *e);

bool root_exists(const struct root *r, const char *path);

/* Read the target of the symbolic link PATH into BUF, cut to CAP; false if it is not a link. */
bool root_link(const struct root *r, const char *path, char *buf, size_t cap);

/*
 * Like openat(2), in a tree that somebody else may have made: links, "/" and ".." do not leave the
 * directory ROOT, magic links of /proc are not followed. A descriptor or -errno; -ENOSYS before Linux 5.6.
 */
int open_in_root(int root, const char *path, int flags);

/*
 * readfd - reading an open file, independent of its offset.
 */

/*
 * Read all of the regular file FD, from its start. *RET is NUL-terminated; free
 * it. -EFBIG if the file has more than MAX bytes, -EMEDIUMTYPE if it is not a
 * regular file. Bytes that are appended after fstat(2) are not read. Uses only
 * the system calls fstat(2) and pread(2).
 */
int readfd_all(int fd, uint64_t max, char **ret, size_t *len, struct err *e);

/*
 * Read or write all LEN bytes at offset AT of FD, with pread(2) or pwrite(2)
 * only. 0 or -errno; -EIO if the file ends earlier.
 */
int readfd_at(int fd, void *to, size_t len, uint64_t at);
int writefd_at(int fd, const void *bytes, size_t len, uint64_t at);

#endif
