/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_btf - the part of the kernel's BTF that a BPF object needs: the layout
 * of a few structs, and the ids of the hooks that its programs attach to.
 *
 * libbpf parses the whole BTF, some 120,000 types, into its own memory and
 * searches it once for each relocated type and each hook: 25 ms of the startup
 * time. One pass over the kernel's bytes takes a tenth of that.
 *
 * Format: Documentation/bpf/btf.rst of the kernel.
 */
#ifndef STACKTOOLS_SYSTEM_KERNEL_BTF_H
#define STACKTOOLS_SYSTEM_KERNEL_BTF_H

#include "base/err.h"

struct kernel_types_name {
	const char *name;
	uint32_t kind; /* BTF_KIND_STRUCT, _TYPEDEF or _FUNC */
	uint32_t id; /* result: the first type of that kind and name; 0 = none */
	uint32_t args; /* result for a typedef of a pointer to a function: its number of arguments */
};

/*
 * Find the N names in FILE (NULL: the running kernel's BTF) and set their ids.
 * Write a reduced BTF to FD: every struct of the list with all its members, and
 * the size and kind of the members' types, which is all that libbpf needs for
 * relocations. It has ids of its own. -EINVAL: FILE is not BTF, or not
 * understood.
 */
int kernel_types_read(const char *file, struct kernel_types_name *names, size_t n, int fd, struct err *e);

/*
 * bpf_hooks - BPF objects whose programs attach to the kernel's own functions,
 * or call one, opened and loaded without libbpf reading the kernel's BTF.
 *
 * Their sections have names of our own, so that libbpf calls our handlers for
 * the id of the hook:
 *
 *   SEC("kern_tp/EVENT")       as tp_btf/EVENT
 *   SEC("kern_iter/TARGET")    as iter/TARGET; "kern_iter.s/TARGET" may sleep
 *   SEC("clock")               as perf_event
 *
 * If kernel_types_read() does not understand the kernel's BTF, libbpf reads it
 * after all: slower, with the same result.
 */

struct bpf_object;
struct bpf_program;

struct bpf_hooks {
	struct kernel_types_name *names; /* of hooks and structs */
	size_t n, cap;
	const char *btf_file; /* the kernel's BTF; NULL = the running kernel's */
	int fd; /* the structs, for relocations */
	char path[32]; /* path of `fd`, for btf_custom_path */
	bool known; /* the kernel's BTF was understood */
	/* bpf/kernel_cast.h: the ids of that function and of struct pt_regs; 0 = this kernel has no such
	 * function */
	uint32_t cast, cast_type;
};

/*
 * Call it before any of the objects is opened: it registers the sections with
 * libbpf (once, for the life of the process). BTF_FILE has the kernel's BTF
 * (NULL: from the kernel itself) and must outlive H. Release with
 * bpf_hooks_close().
 */
int bpf_hooks_open(struct bpf_hooks *h, const char *btf_file, struct err *e);
void bpf_hooks_close(struct bpf_hooks *h); /* a zeroed one is fine */

/* For bpf_object_open_opts.btf_custom_path; NULL if libbpf must read the kernel's BTF. */
const char *bpf_hooks_path(const struct bpf_hooks *h);

/*
 * Read from the kernel's BTF what OBJ, opened with that path, needs: the hooks
 * of its programs and the structs that they read. If `known` is false
 * afterwards, open objects without a path, including this one again.
 */
int bpf_hooks_read(struct bpf_hooks *h, struct bpf_object *obj, struct err *e);

/* Set the ids of the hooks of OBJ's programs, and of what they call, which have the same sections. Call it
 * before OBJ is loaded. */
void bpf_hooks_set(const struct bpf_hooks *h, struct bpf_object *obj);

/* The number of arguments of tracepoint EVENT; -1: the kernel's BTF was not understood, or lacks it. */
int bpf_hooks_args(const struct bpf_hooks *h, const char *event);

bool bpf_hooks_is_iter(const struct bpf_program *prog);

#endif
