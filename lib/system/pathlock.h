/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pathlock - giving up paths for good, by Landlock.
 *
 * It holds for the calling thread and whatever it starts; descriptors that
 * are open stay usable. no_new_privs has to be set. Source: landlock(7),
 * Documentation/userspace-api/landlock.rst of Linux.
 */
#ifndef STACKTOOLS_PATHLOCK_H
#define STACKTOOLS_PATHLOCK_H

#include "base/base.h"

/* The version of Landlock that the kernel has; 0 = none, or it is switched off. */
int pathlock_version(void);

/* No path leads anywhere any more. False where the kernel cannot do that. */
bool pathlock_all(void);

/*
 * Nothing is written, made, removed, renamed or executed by a path any more,
 * but below the N directories (and files, which are written only) in PATHS;
 * those that do not exist, or are NULL, are left out. Reading stays. False where the kernel
 * cannot do that.
 */
bool pathlock_writing(const char *const *paths, size_t n);

#endif
