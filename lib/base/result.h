/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * result - an output file that others cannot read or redirect, and that
 * does not replace another file by accident.
 *
 * A capture holds kernel addresses, and root often writes it into a directory
 * that others can write to. So the file is a new one with mode 0600: a process
 * that has the old one open does not see the new one. Only if the old name cannot
 * be removed is a file of our own truncated instead. The file is never reached
 * through a symbolic link. A file that is not known to be an older result is
 * replaced only on request.
 */
#ifndef STACKTOOLS_BASE_RESULT_H
#define STACKTOOLS_BASE_RESULT_H

#include "base/err.h"

#include <stdbool.h>

/* What a tool writes: a file that begins so may be replaced by a newer one. */
struct result_type {
	const char *name; /* "a capture" */
	const void *magic;
	size_t magic_len; /* at most 64 */
};

/* A new file that takes the name of an older one when it is complete. */
struct result_file {
	int fd; /* to write to */
	char *temp; /* its name until then; NULL = none: a FIFO or a device is written to directly */
	bool fresh; /* the name was free */
};

/*
 * Open PATH for writing, empty. Returns the descriptor, or -errno with the
 * message. An existing regular file is replaced if it is empty or of TYPE, or with
 * FORCE. A FIFO or a character device is written to only with FORCE. Otherwise
 * -EEXIST. A terminal gives -EINVAL, a symbolic link -ELOOP. Directories, sockets
 * and block devices are always refused. -EBUSY if another process has it: see
 * result_claim(). A new file of root, run by sudo(8), belongs to the user who
 * called it.
 */
int result_file_create(const char *path, bool force, const struct result_type *type, struct err *e);

/*
 * Like result_file_create(), but a regular file PATH stays until
 * result_file_commit(). 0 or -errno. Release RET with result_file_close(), which
 * deletes a file that was not committed.
 */
int result_file_begin(
	const char *path, bool force, const struct result_type *type, struct result_file *ret, struct err *e);
int result_file_commit(struct result_file *f, const char *path, struct err *e);
void result_file_close(struct result_file *f);

/*
 * A file without a name on the file system of PATH, whose parts can be released (FALLOC_FL_PUNCH_HOLE); for
 * "-" on that of TMPDIR or /tmp. Returns the descriptor, or -errno with the message.
 */
int result_file_scratch(const char *path, struct err *e);

/*
 * result_claim - a file of result_file_create() that is written to for a long time.
 *
 * It is locked for this process, so that result_file_create() refuses its name to others (-EBUSY) and names
 * the process. (A lock of fcntl(2), which ends with the process, or when it closes any descriptor of the
 * file.) And it may be renamed, deleted or replaced meanwhile: the lock does not prevent that, but
 * result_claim_check() reports it. Neither is for a file that is not regular.
 */
struct result_claim {
	char *path; /* as the kernel calls it; NULL = not a regular file, or without /proc */
	bool linked; /* the file system counts links */
};

/* -EBUSY if another process has locked it meanwhile. Release RET with result_claim_free(). */
int result_claim(int fd, const char *path, struct result_claim *ret, struct err *e);
void result_claim_free(struct result_claim *c); /* zeroed is fine */

/* Whether the file still has a name. One system call. */
bool result_claim_linked(int fd, const struct result_claim *c);

/*
 * 0 if PATH is still the file FD. Else -ESTALE, with the message: it has the name *NOW instead, which the
 * caller frees; *NOW is NULL if it has none, and what was written is lost.
 */
int result_claim_check(int fd, const char *path, const struct result_claim *c, char **now, struct err *e);

/* A duplicate of standard output, or -errno: -EINVAL for a terminal, which TYPE is not for. */
int result_file_stdout(const struct result_type *type, struct err *e);

#endif
