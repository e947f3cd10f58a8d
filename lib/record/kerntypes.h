/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kerntypes - of the kernel's BTF what a BPF object needs: the layout of a few
 * structs, and the ids of the hooks that its programs attach to.
 *
 * libbpf parses the whole BTF, some 120,000 types, into memory of its own and
 * searches it once for each type that is relocated and each hook: 25 ms of a
 * start. One pass over the bytes as the kernel gives them takes a tenth of that.
 *
 * Format: Documentation/bpf/btf.rst of the kernel.
 */
#ifndef STACKTOOLS_KERNTYPES_H
#define STACKTOOLS_KERNTYPES_H

#include "base/err.h"

struct kerntypes_name {
	const char *name;
	uint32_t kind; /* BTF_KIND_STRUCT, _TYPEDEF or _FUNC */
	uint32_t id; /* found: the first of that kind and name; 0 = there is none */
	uint32_t args; /* of a typedef of a pointer to a function: how many arguments that takes */
};

/*
 * Look for the N names in FILE (NULL: the running kernel's BTF) and fill in
 * their ids. To FD goes BTF again: every struct of the list with all its
 * members, and of their types size and kind, which is all that relocations by
 * libbpf look at. Its ids are its own.
 * -EINVAL: FILE is none of the BTF that is understood here.
 */
int kerntypes_read(const char *file, struct kerntypes_name *names, size_t n, int fd, struct err *e);

#endif
