/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symfile - the file that a mapping mapped: found again, and proven.
 *
 * A path is only a place to look: the file there is used if its build ID is
 * the one in the capture, or, for a file without one, if size and time of
 * last modification are. Another file under that name (replaced, upgraded,
 * another machine's) is never used. Looked at in turn:
 *
 *   PATH
 *   SYMFS/PATH, links resolved inside SYMFS
 *   PATH inside /proc/TGID/root: a process of another mount namespace, while
 *   it lives and the capture is of this boot
 */
#ifndef STACKTOOLS_SYMFILE_H
#define STACKTOOLS_SYMFILE_H

#include "elf/file.h"

struct symfile {
	int symfs; /* directory descriptor, -1 = none */
	bool same_boot; /* the processes of the capture may still be there */
};

/* SYMFS (NULL = none) must be a directory. BOOT_ID is the capture's. */
int symfile_init(struct symfile *s, const char *symfs, const char *boot_id, struct err *e);
void symfile_close(struct symfile *s);

/*
 * The ELF file that FILE describes, as a process TGID mapped it. On failure
 * the story is of the place that came closest: a file that is there but is
 * another one (-ESTALE), is broken, or cannot be opened, before one that is
 * not there (-ENOENT).
 */
int symfile_open(const struct symfile *s, const struct cap_file *file, uint32_t tgid, struct elffile **ret,
	struct err *e);

/*
 * The separate debug file of a build ID, from /usr/lib/debug/.build-id under
 * SYMFS and then of this machine. -ENOENT when there is none.
 */
int symfile_open_debug(const struct symfile *s, const struct cap_build_id *id, struct elffile **ret);

#endif
