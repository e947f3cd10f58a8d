/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fs - reading files: under a prefix, or whole.
 */
#ifndef STACKTOOLS_BASE_FS_H
#define STACKTOOLS_BASE_FS_H

#include "base/err.h"

/*
 * root - reading /proc, /sys and /boot under a prefix, so that a recorded
 * tree of another machine is a test fixture.
 *
 * PATH is relative to the prefix and has no leading slash
 * ("proc/sys/kernel/osrelease"). Under a prefix that is not "/" symbolic links
 * are followed as the recorded machine would: none leads out of the tree.
 */

struct root {
	int fd; /* of the prefix directory */
	bool live; /* the prefix is "/": what is read is this machine */
	char prefix[256]; /* for messages */
	void (*asked)(void *ctx, const char *path); /* told of every path that is looked at; NULL = nobody */
	void *asked_ctx;
};

/* PREFIX NULL or "/" is the machine itself. On success release with root_close(). */
int root_open(const char *prefix, struct root *ret, struct err *e);
void root_close(struct root *r); /* a zeroed or closed one is fine */

/* As open(2), O_CLOEXEC added; fd or -errno. */
int root_openat(const struct root *r, const char *path, int flags, struct err *e);

/*
 * The whole of PATH as a NUL-terminated string in *RET (free(3) it), its
 * length in *LEN (may be NULL). -EFBIG beyond MAX bytes. A file of /proc that
 * tells no size is read to its end. Never blocks: -EINVAL for what is no
 * regular file.
 */
int root_read(const struct root *r, const char *path, size_t max, char **ret, size_t *len, struct err *e);

/* First line of PATH without its newline into BUF, cut to CAP. */
int root_line(const struct root *r, const char *path, char *buf, size_t cap, struct err *e);

bool root_exists(const struct root *r, const char *path);

/* Where the symbolic link PATH leads, into BUF, cut to CAP; false when it is none. */
bool root_link(const struct root *r, const char *path, char *buf, size_t cap);

/*
 * readfd - the bytes of an open file, whatever its offset is.
 */

/*
 * All of the regular file FD, from its start and whatever its offset is, with
 * a NUL behind it: *RET is to be freed. -EFBIG where it has more than MAX
 * bytes, -EMEDIUMTYPE for what is no regular file. It may grow meanwhile: what
 * came later than the look at its size is not read. Takes fstat(2) and
 * pread(2) and nothing else of the kernel.
 */
int readfd_all(int fd, uint64_t max, char **ret, size_t *len, struct err *e);

/* All LEN bytes at offset AT of FD, by pread(2) or pwrite(2) alone. 0 or -errno; -EIO where it ends before.
 */
int readfd_at(int fd, void *to, size_t len, uint64_t at);
int writefd_at(int fd, const void *bytes, size_t len, uint64_t at);

#endif
