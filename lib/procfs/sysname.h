/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sysname - the names of system calls of this machine's architecture.
 * Source: <asm/unistd.h>, read when the program was built.
 */
#ifndef STACKTOOLS_SYSNAME_H
#define STACKTOOLS_SYSNAME_H

#include "base/base.h"

/* The name of system call NR; NULL for one that the headers do not have. */
const char *sysname_find(int32_t nr);

#endif
