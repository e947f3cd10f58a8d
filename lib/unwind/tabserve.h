/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tabserve - the life of the process that compiles unwind tables, once it has
 * given up everything else.
 */
#ifndef STACKTOOLS_TABSERVE_H
#define STACKTOOLS_TABSERVE_H

#include "base/err.h"

/* A compiler: the table of the file FD into fresh memory (*RET, free it). It closes FD. */
typedef int tabserve_compile(int fd, uint8_t **ret, size_t *len, struct err *e);

/* Say that it is ready, then answer requests (tabwire.h) from SOCK until the other side closes it. */
void tabserve(int sock, tabserve_compile *compile);

#endif
