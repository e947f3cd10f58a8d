/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * maps - reading /proc/PID/maps.
 * Format: proc_pid_maps(5), fs/proc/task_mmu.c of Linux.
 */
#ifndef STACKTOOLS_SYSTEM_MAPS_H
#define STACKTOOLS_SYSTEM_MAPS_H

#include "base/err.h"

struct procmap {
	uint64_t start, end, offset; /* end exclusive */
	uint32_t prot, flags; /* PROT_*, MAP_SHARED or MAP_PRIVATE */
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	const char *path; /* "" = anonymous; the kernel's \012 turned back; without " (deleted)" */
	bool deleted;
};

/*
 * Parse one LINE (without newline), which is changed; M->path points into it.
 * False when it is no such line.
 */
bool procmaps_parse(char *line, struct procmap *m);

/*
 * Call FN for every mapping of process PID, in address order. FN's nonzero
 * result ends the walk and is returned. -ESRCH when the process is gone or a
 * zombie; -EACCES when it may not be read. At most 64 MiB are read.
 * procmaps_each_of(): by that file of /proc, FD, from its offset on; or -errno
 * for what became of opening it. It stays the caller's.
 */
int procmaps_each_of(
	int fd, uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx, struct err *e);
int procmaps_each(uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx, struct err *e);

#endif
