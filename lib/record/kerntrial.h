/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kerntrial - find out, without being told, where the kernel keeps the members
 * of a task.
 *
 * The bytes of tasks whose ids, names, start times and registers are known
 * (kernsample.h) are searched for the one place where all of them have theirs.
 * A member with no such place, or more than one, is absent.
 */
#ifndef STACKTOOLS_KERNTRIAL_H
#define STACKTOOLS_KERNTRIAL_H

#include "base/err.h"
#include "record/kernshape.h"

/* Find what can be found, by threads and a process that it starts and ends. 20 ms. */
int kerntrial_run(struct kernshape *ret, struct err *e);

#endif
