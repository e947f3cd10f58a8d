/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debugplace - an ELF file at a place where one may be.
 *
 * A place is a path on this machine, or inside a directory: then absolute
 * paths, "..", and symbolic links are resolved inside it, and nothing outside
 * is ever opened (openat2(2)). What is no regular file is not opened at all:
 * no FIFO waits for a writer and no device sees that it was looked at.
 */
#ifndef STACKTOOLS_DEBUGPLACE_H
#define STACKTOOLS_DEBUGPLACE_H

#include "elf/elffile.h"

#define DEBUGPLACE_HERE (-1) /* for ROOT: this machine */

/*
 * The file at PATH as seen from the directory descriptor ROOT. -ENOENT and
 * the like as open(2); -EINVAL for what is no regular file or no ELF file.
 * Needs /proc. Release *RET with elffile_close().
 */
int debugplace_open(int root, const char *path, struct elffile **ret, struct err *e);

/*
 * The path of what is at PATH with all links resolved, as seen from ROOT,
 * into RET of CAP bytes. False where nothing is there, it lies outside of ROOT
 * or does not fit.
 */
bool debugplace_real(int root, const char *path, char *ret, size_t cap);

/* PATH for a person to read: what ROOT is on this machine before it. */
void debugplace_show(int root, const char *path, char *ret, size_t cap);

/* Are both the same file, by device and inode? */
bool debugplace_same(const struct elffile *a, const struct elffile *b);

#endif
