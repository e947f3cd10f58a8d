/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shapetypes - BTF of what a kernel keeps where: written of what a trial has
 * found, or read from a file and compared with it.
 */
#ifndef STACKTOOLS_SHAPETYPES_H
#define STACKTOOLS_SHAPETYPES_H

#include "base/err.h"
#include "record/kernshape.h"

/*
 * Write BTF for SHAPE into the empty file FD: those structs with those members
 * that were found, for relocations by libbpf.
 */
int shapetypes_write(const struct kernshape *shape, int fd, struct err *e);

/*
 * Write of the BTF in FILE what BPF programs need into FD. -EINVAL with the
 * story: it is no BTF, or of another kernel than SHAPE (by trial, of this one)
 * is of. Nobody can tell, and so it is refused, where SHAPE lacks ids and name.
 */
int shapetypes_read(const struct kernshape *shape, const char *file, int fd, struct err *e);

#endif
