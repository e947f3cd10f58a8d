/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * files - the files that recorded processes have mapped, each examined once,
 * while the process that mapped it still exists.
 *
 * A file is (device, inode, path), opened with mapfile_open().
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
 * It is reached by its path, if that is cached and certainly the same file;
 * else through the mapping itself (/proc/PID/map_files), else by the path below
 * the process's root, else by the path below ours; the last two only if the
 * inode is the same. So deleted files and private mount namespaces work. Only
 * regular files are opened: opening a FIFO would block, and opening a device can
 * have effects. What this process may not open, the broker O opens (NULL is
 * fine).
 */

/* A descriptor for reading, the caller's, and its status; -EMEDIUMTYPE: not a regular file; else -errno. */
int mapfile_open(struct worker *o, uint32_t pid, const struct procmap *m, struct stat *st);

/* Its status only; 0 or -errno. */
int mapfile_stat(struct worker *o, uint32_t pid, const struct procmap *m, struct stat *st);

/*
 * A mapping whose file was verified once. If it could be found by its path, it need
 * not be verified again while the file at that path is unchanged. If not, as when
 * this process may not enter the folder, what the broker answered holds for a
 * second: a request takes a hundred times as long. In an array of these, a new
 * entry replaces the old one with the same hash.
 */
#define MAPFILE_PROOFS 16384
struct mapfile_proof {
	uint64_t start, made_ns, inode, dev;
	uint32_t pid, pad;
	uint64_t changed_ns; /* of the file at its path; */
	uint64_t answered_ns; /* or when there was this answer; 0 = there was none */
	struct stat answer;
};

/*
 * As mapfile_stat(), for a process that may be gone, and only if the file is
 * certainly the one that was mapped at MADE_NS, CLOCK_REALTIME: the mapping
 * itself leads to it, or it has the device and inode of M and last changed at
 * least a timer tick before that time. -ESTALE if that is not certain.
 */
int mapfile_stat_then(struct worker *o, struct mapfile_proof proofs[MAPFILE_PROOFS], uint32_t pid,
	const struct procmap *m, uint64_t made_ns, struct stat *st);

/* Is PATH [vdso], [heap], //anon or similar, which is not a file? */
bool mapfile_is_pseudo(const char *path);

/*
 * buildid - the GNU build ID of an ELF file.
 * Source: the ELF specification (Ehdr, Phdr, note segments).
 *
 * The file belongs to the observed process, so it is read only with bounded
 * preads: no mapping, no library.
 */

/*
 * Read the build ID of FD, a regular file. *RET has length 0 if the file is not
 * a little-endian ELF file, or has no build ID in the first MiB of its notes.
 * 0, or -errno of a failed read.
 */
int buildid_read(int fd, struct cap_build_id *ret);

/* The build ID in an image of LEN bytes, such as the vdso. */
void buildid_in_image(const void *image, size_t len, struct cap_build_id *ret);

struct file_table;

int file_table_new(struct file_table **ret, struct err *e);
void file_table_free(struct file_table *t); /* NULL is fine */

/* What this process may not open, O opens. O must outlive T and the results of file_table_way(). */
void file_table_broker(struct file_table *t, struct worker *o);

/*
 * The number of the file that process PID maps as M; UINT32_MAX for anonymous
 * memory and when out of memory. A new file is opened to read its build ID.
 */
uint32_t file_table_get(struct file_table *t, uint32_t pid, const struct procmap *m);

const char *file_table_path(const struct file_table *t, uint32_t file);

/* Set path, device and inode of RET to those of FILE as it was mapped; false for anonymous memory. */
bool file_table_place(const struct file_table *t, uint32_t file, struct procmap *ret);

/* The capture's id of FILE, which is written to W at its first use; CAPTURE_NONE for CAPTURE_NONE. */
uint32_t file_table_emit(struct file_table *t, uint32_t file, struct cap_writer *w);

/* How to open a file again; the path of `cap` is valid until file_table_free(). */
struct file_table_way {
	struct cap_file cap;
	uint32_t pid; /* the process that mapped it last, at: */
	uint64_t start, end;
	struct worker *broker;
};

void file_table_way(const struct file_table *t, uint32_t file, struct file_table_way *ret);

/*
 * Open the file again for reading, as mapfile_open() for the process that
 * mapped it last. The descriptor is the caller's; or -errno; -ESTALE if the
 * file has changed or is another one. Any thread may call this.
 */
int file_table_open(const struct file_table_way *way);

/* How many files in the capture could not be read. */
uint64_t file_table_unread(const struct file_table *t);

/*
 * The flags with which a runtime that a recorded process maps keeps frame
 * pointers or names its code, as text for users; NULL if none is known. JAVA:
 * the Java that runs needs none.
 */
const char *file_table_runtime_flags(const struct file_table *t, bool java);

#endif
