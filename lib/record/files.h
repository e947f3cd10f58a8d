/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * files - the files that recorded processes have mapped, each looked at
 * once, while the process that mapped it is still there.
 *
 * A file is (device, inode, path), opened as mapfile_*() says.
 */
#ifndef STACKTOOLS_RECORD_FILES_H
#define STACKTOOLS_RECORD_FILES_H

#include "capture/types.h"
#include "capture/writer.h"
#include "system/broker.h"
#include "system/maps.h"

#include <sys/stat.h>

/*
 * mapfile - the file behind a mapping of another process.
 *
 * Reached through the mapping itself (/proc/PID/map_files), else through the
 * process's root, else by its path, if that still is the same inode: so
 * deleted files and private mount namespaces work. Only regular files are
 * opened: looking at a FIFO would wait, at a device might do something. What
 * this process's own rights do not reach the broker (NULL is fine) is asked
 * for.
 */

/* A descriptor for reading, the caller's, and its status; -EMEDIUMTYPE for what is not a regular file, else
 * -errno. */
int mapfile_open(struct worker *o, uint32_t pid, const struct procmap *m, struct stat *st);

/* Its status alone; 0 or -errno. */
int mapfile_stat(struct worker *o, uint32_t pid, const struct procmap *m, struct stat *st);

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
int mapfile_stat_then(struct worker *o, struct mapfile_proof proofs[MAPFILE_PROOFS], uint32_t pid,
	const struct procmap *m, uint64_t made_ns, struct stat *st);

/* [vdso], [heap], //anon and the like: what is on no disk. */
bool mapfile_is_pseudo(const char *path);

/* The vdso, the same for all 64-bit processes of a kernel, ours included; NULL = there is none. */
const uint8_t *mapfile_vdso(size_t *len);

/*
 * buildid - the GNU build ID of an ELF file.
 * Source: the ELF specification (Ehdr, Phdr, note segments).
 *
 * The file belongs to the process that is observed, so it is read with
 * bounded preads and nothing else: no mapping, no library.
 */

/*
 * Read the build ID of FD, a regular file. *RET has length 0 when the file is
 * no little-endian ELF or has no build ID in the first MiB of its notes. 0 or -errno of a failed read.
 */
int buildid_read(int fd, struct cap_build_id *ret);

/* The image of LEN bytes at IMAGE, such as the vdso's. */
void buildid_in_image(const void *image, size_t len, struct cap_build_id *ret);

struct file_table;

int file_table_new(struct file_table **ret, struct err *e);
void file_table_free(struct file_table *t); /* NULL is fine */

/* What our own rights do not reach is asked of O, which outlives T and whatever file_table_way() tells. */
void file_table_broker(struct file_table *t, struct worker *o);

/*
 * The number of the file that process PID maps as M; UINT32_MAX for anonymous
 * memory (and when memory ran out). A new one is opened and its build ID read.
 */
uint32_t file_table_get(struct file_table *t, uint32_t pid, const struct procmap *m);

const char *file_table_path(const struct file_table *t, uint32_t file);

/* FILE as it was mapped: path, device and inode of RET; false for anonymous memory. */
bool file_table_place(const struct file_table *t, uint32_t file, struct procmap *ret);

/* FILE's build ID, told by the kernel: taken where the file itself could not be read. */
void file_table_tell(struct file_table *t, uint32_t file, const struct cap_build_id *id);

/* The capture's id of FILE, which is written to W at its first use. CAPTURE_NONE stays CAPTURE_NONE. */
uint32_t file_table_emit(struct file_table *t, uint32_t file, struct cap_writer *w);

/* How to come to a file again; the path of `cap` stays until file_table_free(). */
struct file_table_way {
	struct cap_file cap;
	uint32_t pid; /* which mapped it last, here: */
	uint64_t start, end;
	struct worker *broker;
};

void file_table_way(const struct file_table *t, uint32_t file, struct file_table_way *ret);

/*
 * The file opened again for reading, by the process that mapped it last while it lives, else by path: the
 * caller's, or -errno; -ESTALE when it has changed, or is another one. For any thread.
 */
int file_table_open(const struct file_table_way *way);

/* Files whose build ID could not be read, of those that were looked at. */
uint64_t file_table_unread(const struct file_table *t);

#endif
