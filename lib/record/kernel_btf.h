/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_btf - of the kernel's BTF what a BPF object needs: the layout of a few
 * structs, and the ids of the hooks that its programs attach to.
 *
 * libbpf parses the whole BTF, some 120,000 types, into memory of its own and
 * searches it once for each type that is relocated and each hook: 25 ms of a
 * start. One pass over the bytes as the kernel gives them takes a tenth of that.
 *
 * Format: Documentation/bpf/btf.rst of the kernel.
 */
#ifndef STACKTOOLS_RECORD_KERNEL_BTF_H
#define STACKTOOLS_RECORD_KERNEL_BTF_H

#include "base/err.h"

struct kernel_types_name {
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
int kernel_types_read(const char *file, struct kernel_types_name *names, size_t n, int fd, struct err *e);

/*
 * bpf_hooks - BPF objects whose programs attach to the kernel's own functions,
 * opened and loaded without libbpf's reading of the kernel's BTF.
 *
 * Their sections are ours, so that libbpf asks here for the id of the hook:
 *
 *   SEC("kern_tp/EVENT")       as tp_btf/EVENT
 *   SEC("kern_iter/TARGET")    as iter/TARGET; "kern_iter.s/TARGET" sleeps
 *
 * Where the kernel's BTF is not understood (kerntypes_*()) libbpf reads it after
 * all: slower, with the same result.
 */

struct bpf_object;
struct bpf_program;

struct bpf_hooks {
	struct kernel_types_name *names; /* of hooks and structs */
	size_t n, cap;
	const char *btf_file; /* the kernel's BTF; NULL = of the one that runs */
	int fd; /* the structs, for relocations */
	char path[32]; /* the same as a file's name, for btf_custom_path */
	bool known; /* the kernel's BTF was understood */
};

/*
 * Before any of the objects is opened: libbpf learns the sections (once, for
 * as long as the process lives). BTF_FILE has the kernel's BTF (NULL: the kernel
 * itself gives it) and outlives H. Release with bpf_hooks_close().
 */
int bpf_hooks_open(struct bpf_hooks *h, const char *btf_file, struct err *e);
void bpf_hooks_close(struct bpf_hooks *h); /* a zeroed one is fine */

/* For bpf_object_open_opts.btf_custom_path; NULL when libbpf has to read the kernel's. */
const char *bpf_hooks_path(const struct bpf_hooks *h);

/*
 * Read what OBJ, opened with that path, needs of the kernel: the hooks of its
 * programs and the structs that they read. When `known` is false after that,
 * objects have to be opened without a path, this one again.
 */
int bpf_hooks_read(struct bpf_hooks *h, struct bpf_object *obj, struct err *e);

/* Give the programs of OBJ, which has the same sections, the ids of their hooks: before it is loaded. */
void bpf_hooks_set(const struct bpf_hooks *h, struct bpf_object *obj);

/* How many arguments the tracepoint EVENT has; -1: the kernel's BTF was not understood. */
int bpf_hooks_args(const struct bpf_hooks *h, const char *event);

bool bpf_hooks_is_iter(const struct bpf_program *prog);

#endif
