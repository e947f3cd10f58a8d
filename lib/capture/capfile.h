/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capfile - a file for a result that others must not read, redirect or lose
 * by accident.
 *
 * A capture holds kernel addresses and is often written by root into a folder
 * that others can write to. So the file is always a new one with mode 0600
 * (whoever had the old one open does not see the new one), never reached
 * through a symbolic link, and what is not known to be an older result is not
 * replaced unasked.
 */
#ifndef STACKTOOLS_CAPFILE_H
#define STACKTOOLS_CAPFILE_H

#include "base/err.h"

/*
 * Open PATH for writing, empty; returns the descriptor, or -errno with the
 * story. An existing regular file is replaced when it is empty or begins with
 * the MAGIC_LEN bytes of MAGIC, or with FORCE; a FIFO or a character device
 * is written to with FORCE only; else -EEXIST. A terminal gives -EINVAL, a
 * symbolic link -ELOOP; directories, sockets and block devices are refused in
 * any case.
 */
int capfile_create(const char *path, bool force, const void *magic, size_t magic_len, struct err *e);

/* A new file that takes the name of an older one when it is whole. */
struct capfile {
	int fd; /* to write to */
	char *temp; /* its name until then; NULL = written to as it is: a FIFO or a device */
	bool fresh; /* the name was free */
};

/*
 * As capfile_create(), but a regular file PATH stays until capfile_commit().
 * 0 or -errno. Release RET with capfile_close(): what was not committed is gone then.
 */
int capfile_begin(const char *path, bool force, const void *magic, size_t magic_len, struct capfile *ret,
	struct err *e);
int capfile_commit(struct capfile *f, const char *path, struct err *e);
void capfile_close(struct capfile *f);

/* A duplicate of standard output, or -errno: -EINVAL for a terminal. */
int capfile_stdout(struct err *e);

#endif
