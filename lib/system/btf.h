/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * btf - the kernel's BTF by type id, without a copy: libbpf would copy and check
 * some megabytes before the first question.
 *
 * Format: Documentation/bpf/btf.rst of the kernel. <linux/btf.h> has the structs.
 */
#ifndef STACKTOOLS_SYSTEM_BTF_H
#define STACKTOOLS_SYSTEM_BTF_H

#include "base/err.h"

#include <linux/btf.h>
#include <stdint.h>

#define BTF_VMLINUX "/sys/kernel/btf/vmlinux"

struct btf_image {
	const uint8_t *bytes;
	size_t len;
	bool mapped; /* else allocated */
	const uint8_t *types;
	const char *strings; /* end with a NUL */
	uint32_t types_len, strings_len;
	uint32_t *at; /* by id: offset of the type in `types` */
	uint32_t n; /* number of ids; 0 is void */
	size_t cap;
};

/*
 * Read the file FD; NAME is for messages. FIXED: it is the kernel's own, which
 * cannot shrink and may be mapped. On success release B with
 * btf_image_release(). -EINVAL: not a regular file, or larger than 256 MiB.
 */
int btf_image_read(struct btf_image *b, int fd, const char *name, bool fixed, struct err *e);
void btf_image_release(struct btf_image *b); /* a zeroed one is fine */

/* Find the types of B. -EINVAL: this is not BTF, or has kinds of types that are not understood; -ENOMEM. */
int btf_image_parse(struct btf_image *b);

/* Type ID, with all that follows it; NULL: there is none, or it is void. */
const struct btf_type *btf_image_type(const struct btf_image *b, uint32_t id);

/* The string at OFF; NULL: OFF is beyond the strings, which a member's may be, and a type's never is. */
const char *btf_image_name(const struct btf_image *b, uint32_t off);

#endif
