/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ptfiles - the executable mappings of a process and the ELF files behind
 * them, for a walker that can open none itself. Floor 5.
 *
 * A file that cannot be opened any more (deleted, or on a mount that is not
 * seen here) is made up of what the process has mapped of it, in a memfd: its
 * headers and unwind tables are in segments that are loaded.
 */
#ifndef STACKTOOLS_PTFILES_H
#define STACKTOOLS_PTFILES_H

#include "err.h"

struct ptfiles_map {
	uint64_t start, end, offset;
	int fd; /* -1 = no file, or none that can be read */
};

struct ptfiles {
	uint64_t seen; /* hash of what /proc/PID/maps said; 0 = nothing yet */
	struct ptfiles_map *maps; /* by address */
	size_t n, cap;
	uint64_t cut; /* mappings beyond PTFILES_MAX */
};

#define PTFILES_MAX 4000 /* mappings */
#define PTFILES_FDS 1000 /* files */

/*
 * Look again: *CHANGED tells whether the maps differ from the last time. The files
 * are open then, until ptfiles_close_files(). -ESRCH, -EACCES and the like with the story.
 */
int ptfiles_look(struct ptfiles *f, uint32_t pid, bool *changed, struct err *e);
void ptfiles_close_files(struct ptfiles *f);
void ptfiles_reset(struct ptfiles *f); /* as if never looked, memory released; a zeroed one is fine */

/* Is there executable code at ADDR, as of the last look? */
bool ptfiles_covers(const struct ptfiles *f, uint64_t addr);

#endif
