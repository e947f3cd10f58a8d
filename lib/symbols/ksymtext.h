/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ksymtext - the lines of /proc/kallsyms as an array.
 *
 * Generating /proc/kallsyms costs the kernel far more than reading it costs
 * us; what is ours to save is memory, since every page touched for the first
 * time is a fault and a page to be cleared. So the text passes through a small
 * window; kept are an array of symbols and the names' bytes once: "foo" is the
 * tail of the "__pfx_foo" before it. Both lie in huge pages where the kernel
 * has them to give: filling them takes a few faults, not thousands.
 */
#ifndef STACKTOOLS_KSYMTEXT_H
#define STACKTOOLS_KSYMTEXT_H

#include "base/err.h"

/* A name: an offset into the bytes, with the flags of ksymname above it. The top bit is the caller's. */
#define KSYMTEXT_BITS 27
#define KSYMTEXT_OFFSET(name) ((name) & ((1u << KSYMTEXT_BITS) - 1))
#define KSYMTEXT_FLAGS(name) ((name) >> KSYMTEXT_BITS & 15u)

/* The lower half of the address space holds no kernel address: per-CPU offsets, and zeros. */
#define KSYMTEXT_KERNEL_HALF (UINT64_C(1) << 63)

struct ksym {
	uint64_t start;
	uint32_t name;
	uint32_t module; /* an offset into the bytes, 0 = the kernel */
};

struct ksymtext {
	struct ksym *syms; /* n, with room for one more */
	size_t n, cap;
	char *bytes; /* names and modules, each with a NUL; bytes[0] is the empty string */
	size_t bytes_len, bytes_cap;
	size_t descent; /* the first symbol that starts before the one in front of it, 0 = none does */
	uint64_t odd; /* nonzero when the text is not printable ASCII */
	size_t zero, low; /* lines left out: the address is 0, or not in the kernel's half */
};

/*
 * Read FD to its end, a file called FILE in messages, into *RET, which is
 * zeroed. Release it with ksymtext_free() whether this succeeded or not.
 * -EINVAL when a line is none of /proc/kallsyms, or the last one is cut off;
 * -EFBIG above 128 MiB of names.
 */
int ksymtext_read(int fd, const char *file, struct ksymtext *ret, struct err *e);
void ksymtext_free(struct ksymtext *t);

#endif
