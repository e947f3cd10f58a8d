/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kmodfile - the file of a kernel module with its debug information, and where functions of the
 * recorded module are in it.
 *
 * A capture has no build ID of a module, so another build of the same release cannot be told for sure. A
 * file is believed
 *
 *   if the release in its "vermagic" is the recorded one; a debug file has no bytes there: then by its
 * directory; if its build ID is that of the module that is loaded, where this machine is still the recorded
 * one; if it has the recorded functions, as far apart in each section as they were, and none longer than
 * there was room for.
 *
 * One that contradicts any of these is not used. A function is known by its name; one of several with that
 * name, by its distance from another function of its section. Where neither tells, it is not known.
 */
#ifndef STACKTOOLS_KMODFILE_H
#define STACKTOOLS_KMODFILE_H

#include "base/fs.h"
#include "elf/elffile.h"
#include "elf/kmodtree.h"

struct kmodfile_opts {
	const struct kmodtree *tree;
	int symfs; /* directory descriptor, -1 = none: that of the tree */
	const char *release; /* of the recorded kernel */
	const struct root
		*root; /* of the machine on which the module may still be loaded; NULL = it is not */
};

/* A recorded function. */
struct kmodfile_symbol {
	const struct cap_ksym *k;
	uint64_t vaddr, size; /* as elfrel_layout() has it */
	uint64_t next; /* where the next function of its section begins, UINT64_MAX = there is none */
	uint32_t section;
	uint32_t times; /* how many functions have its name; only one that is certain counts: 1 */
};

struct kmodfile {
	struct elffile *file; /* NULL = none was found */
	struct kmodfile_symbol *symbols; /* by recorded address */
	size_t n;
	bool proven; /* by its build ID */
	char where[512]; /* its path */
	char missed[512]; /* without one: why the first that was there is not used, "" = nothing was there */
};

/*
 * For MODULE, of which the N functions KSYMS were recorded: ascending by address, distinct; they must stay.
 * Finding nothing is no error. -ENOMEM. Release with kmodfile_close(), on failure too.
 */
int kmodfile_find(const struct kmodfile_opts *o, const char *module, const struct cap_ksym *const *ksyms,
	size_t n, struct kmodfile *ret, struct err *e);
void kmodfile_close(struct kmodfile *f); /* a zeroed one is fine */

/* The file's address, as elfrel_layout() has it, of the recorded one ADDR; false where it is not known for
 * sure. */
bool kmodfile_vaddr(const struct kmodfile *f, uint64_t addr, uint64_t *vaddr);

#endif
