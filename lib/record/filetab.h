/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filetab - the files that recorded processes have mapped, each looked at
 * once, while the process that mapped it is still there.
 *
 * A file is (device, inode, path), opened as mapfile.h says.
 */
#ifndef STACKTOOLS_FILETAB_H
#define STACKTOOLS_FILETAB_H

#include "capture/writer.h"
#include "system/broker.h"
#include "system/maps.h"

struct filetab;

int filetab_new(struct filetab **ret, struct err *e);
void filetab_free(struct filetab *t); /* NULL is fine */

/* What our own rights do not reach is asked of O, which outlives T and whatever filetab_way() tells. */
void filetab_opener(struct filetab *t, struct opener *o);

/*
 * The number of the file that process PID maps as M; UINT32_MAX for anonymous
 * memory (and when memory ran out). A new one is opened and its build ID read.
 */
uint32_t filetab_get(struct filetab *t, uint32_t pid, const struct procmap *m);

const char *filetab_path(const struct filetab *t, uint32_t file);

/* FILE as it was mapped: path, device and inode of RET; false for anonymous memory. */
bool filetab_place(const struct filetab *t, uint32_t file, struct procmap *ret);

/* FILE's build ID, told by the kernel: taken where the file itself could not be read. */
void filetab_tell(struct filetab *t, uint32_t file, const struct cap_build_id *id);

/* The capture's id of FILE, which is written to W at its first use. CAP_NONE stays CAP_NONE. */
uint32_t filetab_emit(struct filetab *t, uint32_t file, struct capwrite *w);

/* How to come to a file again; the path of `cap` stays until filetab_free(). */
struct filetab_way {
	struct cap_file cap;
	uint32_t pid; /* which mapped it last, here: */
	uint64_t start, end;
	struct opener *opener;
};

void filetab_way(const struct filetab *t, uint32_t file, struct filetab_way *ret);

/*
 * The file opened again for reading, by the process that mapped it last while it lives, else by path: the
 * caller's, or -errno; -ESTALE when it has changed, or is another one. For any thread.
 */
int filetab_open(const struct filetab_way *way);

/* Files whose build ID could not be read, of those that were looked at. */
uint64_t filetab_unread(const struct filetab *t);

#endif
