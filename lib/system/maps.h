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
	const char *path; /* "" = anonymous; the kernel's \012 is unescaped, " (deleted)" removed */
	bool deleted;
};

/*
 * Parse one LINE (without newline), which is modified; M->path points into it.
 * False if it is not a line of maps.
 */
bool procmaps_parse(char *line, struct procmap *m);

/*
 * Call FN for every mapping of process PID, in address order. A nonzero result of
 * FN ends the walk and is returned. -ESRCH if the process is gone or a zombie;
 * -EACCES if reading is not permitted; -EFBIG beyond 64 MiB. procmaps_each_of()
 * reads FD, an open /proc/PID/maps, from its current offset; FD may also be the
 * -errno of opening it. The caller owns FD.
 */
int procmaps_each_of(
	int fd, uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx, struct err *e);
int procmaps_each(uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx, struct err *e);

#endif
