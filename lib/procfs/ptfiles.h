/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ptfiles - the executable mappings of a process and the ELF files behind
 * them, for a walker that can open none itself.
 *
 * A file that cannot be opened any more (deleted, or on a mount that is not
 * seen here) is made up of what the process has mapped of it, in a memfd: its
 * headers and unwind tables are in segments that are loaded.
 */
#ifndef STACKTOOLS_PTFILES_H
#define STACKTOOLS_PTFILES_H

#include "procfs/ptreach.h"

struct ptfiles_map {
	uint64_t start, end, offset;
};

struct ptfiles {
	uint64_t seen; /* hash of the executable mappings that were told; 0 = none yet */
	uint64_t text; /* hash of the whole text at the last look: the same text, the same mappings */
	uint64_t cut; /* mappings beyond the limits, the last time they were told */
	uint64_t unread; /* files that could not be had */
};

#define PTFILES_MAPS 4000 /* mappings told, at most */
#define PTFILES_FILES 1000 /* files opened for them, one at a time */

/* Have they changed since they were told the last time? -ESRCH, -EACCES and the like with the story. */
int ptfiles_look(struct ptfiles *f, const struct ptreach *r, uint32_t pid, bool *changed, struct err *e);

/*
 * Call FN for each, in the order of addresses. FD is closed after the call; -1 =
 * of no file, or of one that could not be had. FN's nonzero result ends it and
 * is returned. -ENOEXEC for a 32-bit program.
 */
int ptfiles_tell(struct ptfiles *f, const struct ptreach *r, uint32_t pid,
	int (*fn)(void *ctx, const struct ptfiles_map *m, int fd, struct err *e), void *ctx, struct err *e);

#endif
