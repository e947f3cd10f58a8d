/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kallcopy - saving /proc/kallsyms for another machine or another day.
 *
 * A copy holds the kernel's addresses, which an attacker of that machine would
 * like to know: it is readable by its owner alone.
 */
#ifndef STACKTOOLS_KALLCOPY_H
#define STACKTOOLS_KALLCOPY_H

#include "base/err.h"

/*
 * Save FROM (NULL: /proc/kallsyms) as TO, mode 0600, whole or not at all: it is
 * written beside TO, checked as kallsyms_load() would, and renamed.
 * TO is never written through a symbolic link (-ELOOP), nor over anything but a
 * regular file (-EINVAL), nor, without FORCE, over a file that is no such copy
 * (-EEXIST).
 */
int kallcopy_save(const char *from, const char *to, bool force, struct err *e);

#endif
