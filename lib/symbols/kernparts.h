/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernparts - the files of the recorded kernel: its own (vmlinux.h) and those of its modules (kmodfile.h),
 * for lines and inlined calls of kernel frames.
 *
 * Parts have numbers: 0 is the kernel itself, others are modules, in the order in which they were asked for.
 */
#ifndef STACKTOOLS_KERNPARTS_H
#define STACKTOOLS_KERNPARTS_H

#include "base/intern.h"
#include "capture/reader.h"
#include "elf/kernelfiles.h"
#include "symbols/modhits.h"

struct kernparts_opts {
	struct vmlinux_opts places;
	bool same_boot; /* this machine is still the recorded one: its modules may be loaded */
};

struct kernparts {
	const struct capread *c;
	struct kernparts_opts o;
	struct intern names; /* of modules: a part's number is one more */
	struct kmodtree tree;
	bool looked; /* for what is in TREE */
};

/* C and what O points to must stay. Release with kernparts_free(). */
void kernparts_init(struct kernparts *k, const struct capread *c, const struct kernparts_opts *o);
void kernparts_free(struct kernparts *k); /* a zeroed one is fine */

/* MODULE as in cap_ksym: "" and "bpf" are the kernel's. UINT32_MAX when memory runs out. */
uint32_t kernparts_id(struct kernparts *k, const char *module);
size_t kernparts_count(const struct kernparts *k);
const char *kernparts_name(const struct kernparts *k, size_t id); /* "" for the kernel; NULL for none */

struct kernpart {
	struct vmlinux kernel;
	struct kmodfile module; /* one of both has a file */
	char debug[512]; /* its path, if debug information is in it; else "" */
	char missed[640]; /* why there is none: the first that was there is not used; "" = nothing was there
			   */
};

/*
 * The file of part ID, for N asks, whose offsets are addresses, in ascending order: 1, or 0 where there is
 * none; -errno as of vmlinux_find(), or -ENOMEM. Release RET with kernpart_close() in any case.
 */
int kernpart_find(struct kernparts *k, uint32_t id, const struct modhits_ask *asks, size_t n,
	struct kernpart *ret, struct err *e);
void kernpart_close(struct kernpart *p); /* a zeroed one is fine */

const struct elffile *kernpart_file(const struct kernpart *p); /* NULL = none */

/* The file's address of the recorded one ADDR; false where there is none. */
bool kernpart_vaddr(const struct kernpart *p, uint64_t addr, uint64_t *vaddr);

#endif
