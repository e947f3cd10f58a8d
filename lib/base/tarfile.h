/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tarfile - an archive that tar(1) unpacks, written file by file.
 *
 * Format: ustar, as POSIX.1-2017 has it under pax. Owner and group are root's
 * and the mode is 0644, whatever they were where the bytes come from.
 */
#ifndef STACKTOOLS_TARFILE_H
#define STACKTOOLS_TARFILE_H

#include "base/out.h"

struct tarfile {
	struct out *o; /* the caller's; its errors are met at out_flush() */
	uint64_t time; /* of every file, seconds since 1970 */
};

/* NAME is relative, without ".."; -ENAMETOOLONG beyond 255 bytes, or where it cannot be cut at a slash. */
int tarfile_put(struct tarfile *t, const char *name, const void *bytes, size_t len, struct err *e);
int tarfile_link(struct tarfile *t, const char *name, const char *target, struct err *e); /* symbolic */

/* Nothing comes after this. */
void tarfile_end(struct tarfile *t);

#endif
