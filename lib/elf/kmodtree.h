/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kmodtree - the files of a kernel's modules that are there, by module.
 *
 * Looked for, each under SYMFS first if one is given, at any depth below
 *
 *   lib/modules/RELEASE, usr/lib/modules/RELEASE in each directory of debug files, then in /usr/lib/debug
 *   /lib/modules/RELEASE, /usr/lib/modules/RELEASE
 *
 * are NAME.ko.debug, NAME.ko, and NAME.ko.xz and the like, which is told of only. In names of
 * files '-' is the '_' of the module's. Below these directories no symbolic link is followed.
 */
#ifndef STACKTOOLS_KMODTREE_H
#define STACKTOOLS_KMODTREE_H

#include "base/err.h"

struct kmodtree_opts {
	int symfs; /* directory descriptor, -1 = none */
	const char *const *dirs; /* --debug-dir, before /usr/lib/debug */
	size_t n_dirs;
};

struct kmodtree_file {
	char *name; /* of the module */
	char *path; /* from SYMFS, if it is IN_SYMFS */
	unsigned int place; /* the order of the places above */
	bool in_symfs, packed; /* as a whole: .ko.xz */
};

struct kmodtree {
	struct kmodtree_file *files; /* by name, place and path */
	size_t n, cap;
	size_t seen; /* entries of directories */
	bool cut; /* there are more than anybody has: the rest was not looked at */
};

/* What is there for RELEASE: of the capture, so one that is no name of a directory has nothing. 0 or -ENOMEM.
 */
int kmodtree_load(const struct kmodtree_opts *o, const char *release, struct kmodtree *ret, struct err *e);
void kmodtree_free(struct kmodtree *t); /* a zeroed one is fine */

/* The first of *N files of MODULE; NULL = none. */
const struct kmodtree_file *kmodtree_find(const struct kmodtree *t, const char *module, size_t *n);

#endif
