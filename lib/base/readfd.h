/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * readfd - the bytes of an open file, whole.
 */
#ifndef STACKTOOLS_READFD_H
#define STACKTOOLS_READFD_H

#include "base/err.h"

/*
 * All of the regular file FD, from its start and whatever its offset is, with
 * a NUL behind it: *RET is to be freed. -EFBIG where it has more than MAX
 * bytes, -EMEDIUMTYPE for what is no regular file. It may grow meanwhile: what
 * came later than the look at its size is not read. Takes fstat(2) and
 * pread(2) and nothing else of the kernel.
 */
int readfd_all(int fd, uint64_t max, char **ret, size_t *len, struct err *e);

#endif
