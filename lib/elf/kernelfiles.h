/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernelfiles - the files of a recorded kernel: vmlinux and its modules.
 */
#ifndef STACKTOOLS_ELF_KERNELFILES_H
#define STACKTOOLS_ELF_KERNELFILES_H

#include "base/err.h"
#include "base/fs.h"
#include "elf/file.h"

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

/*
 * vmlinux - the kernel's own file with its debug information, for lines and
 * inlined calls of kernel frames.
 *
 * It is believed only if its build ID is the one that the recorded kernel told
 * (/sys/kernel/notes). A kernel is moved when it boots (KASLR): by how much,
 * the address of _stext says, in the capture and in the file. Modules lie
 * elsewhere: kmodfile_*().
 *
 * Places, where none is named, each under SYMFS first if one is given:
 *
 *   .build-id/xx/yyyy.debug in each directory of debug files, then /usr/lib/debug
 *   /usr/lib/debug/boot/vmlinux-RELEASE
 *   /usr/lib/debug/lib/modules/RELEASE/vmlinux, and with /usr before /lib
 *   /lib/modules/RELEASE/build/vmlinux, /lib/modules/RELEASE/vmlinux
 *   /boot/vmlinux-RELEASE
 */

struct vmlinux_opts {
	const char *file; /* --vmlinux: this one or none; NULL = search_vmlinux */
	int symfs; /* directory descriptor, -1 = none */
	const char *const *dirs; /* --debug-dir, before /usr/lib/debug */
	size_t n_dirs;
};

struct vmlinux {
	struct elffile *file; /* NULL = none was found */
	uint64_t slide; /* recorded address - the file's; wraps */
	char where[512]; /* its path */
	char missed[512]; /* without one: why the first that was there is not used, "" = nothing was there */
};

/*
 * For the kernel of HOST. Finding nothing is no error unless it was named:
 * -ENOENT and the like for O->file that cannot be opened, -EINVAL when it is
 * another kernel's, or the capture does not tell its own, or where it was.
 * Release with vmlinux_close(), on failure too.
 */
int vmlinux_find(
	const struct vmlinux_opts *o, const struct cap_host *host, struct vmlinux *ret, struct err *e);
void vmlinux_close(struct vmlinux *v); /* a zeroed one is fine */

/* The file's address of the kernel address ADDR; false for one that is not the kernel image's code. */
bool vmlinux_vaddr(const struct vmlinux *v, uint64_t addr, uint64_t *vaddr);

#endif
