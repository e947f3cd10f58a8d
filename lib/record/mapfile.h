/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapfile - the file behind a mapping of another process.
 *
 * Reached through the mapping itself (/proc/PID/map_files), else through the
 * process's root, else by its path, if that still is the same inode: so
 * deleted files and private mount namespaces work. Only regular files are
 * opened: looking at a FIFO would wait, at a device might do something. What
 * this process's own rights do not reach the opener (NULL is fine) is asked
 * for.
 */
#ifndef STACKTOOLS_MAPFILE_H
#define STACKTOOLS_MAPFILE_H

#include "system/broker.h"
#include "system/maps.h"

#include <sys/stat.h>

/* A descriptor for reading, the caller's, and its status; -EMEDIUMTYPE for what is no regular file, else
 * -errno. */
int mapfile_open(struct opener *o, uint32_t pid, const struct procmap *m, struct stat *st);

/* Its status alone; 0 or -errno. */
int mapfile_stat(struct opener *o, uint32_t pid, const struct procmap *m, struct stat *st);

/*
 * A mapping whose file was proven once, and could be found by its path: as long
 * as what stands there is unchanged it need not be proven again. Of those that fall on
 * one place the last is kept.
 */
#define MAPFILE_PROOFS 16384
struct mapfile_proof {
	uint64_t start, made_ns, inode, changed_ns, dev;
	uint32_t pid, pad;
};

/*
 * The same for a process that may be gone, and only if the file is certainly
 * the one that was mapped at MADE_NS, CLOCK_REALTIME: by the mapping itself;
 * else it has the device and inode of M and has not changed since a while
 * before that. -ESTALE when that is not certain.
 */
int mapfile_stat_then(struct opener *o, struct mapfile_proof proofs[MAPFILE_PROOFS], uint32_t pid,
	const struct procmap *m, uint64_t made_ns, struct stat *st);

/* Does the path of M name no file any more, or another one? */
bool mapfile_is_gone(struct opener *o, uint32_t pid, const struct procmap *m);

/* [vdso], [heap], //anon and the like: what is on no disk. */
bool mapfile_is_pseudo(const char *path);

/* The vdso, the same for all 64-bit processes of a kernel, ours included; NULL = there is none. */
const uint8_t *mapfile_vdso(size_t *len);

#endif
