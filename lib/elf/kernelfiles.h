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
 * kmodtree - the available module files of a kernel, by module.
 *
 * Searches these directories at any depth, each first under SYMFS if one is
 * given:
 *
 *	lib/modules/RELEASE, usr/lib/modules/RELEASE in each debug directory, then in /usr/lib/debug
 *	/lib/modules/RELEASE, /usr/lib/modules/RELEASE
 *
 * for NAME.ko.debug and NAME.ko. NAME.ko.xz and other compressed files are
 * reported but not read. '-' in a file name is '_' in the module name. Symbolic
 * links below these directories are not followed.
 */

struct kmodtree_opts {
	int symfs; /* directory descriptor, -1 = none */
	const char *const *dirs; /* --debug-dir, before /usr/lib/debug */
	size_t n_dirs;
};

struct kmodtree_file {
	char *name; /* of the module */
	char *path; /* relative to SYMFS if IN_SYMFS */
	unsigned int place; /* index of its place in the list above */
	bool in_symfs, packed; /* packed: compressed as a whole (.ko.xz) */
};

struct kmodtree {
	struct kmodtree_file *files; /* by name, place and path */
	size_t n, cap;
	size_t seen; /* directory entries read */
	bool cut; /* a limit was exceeded: the rest was not searched */
};

/*
 * Search for RELEASE, which comes from the capture: if it is not a valid
 * directory name, nothing is found. 0 or -ENOMEM.
 */
int kmodtree_load(const struct kmodtree_opts *o, const char *release, struct kmodtree *ret, struct err *e);
void kmodtree_free(struct kmodtree *t); /* a zeroed one is fine */

/* The first of *N files of MODULE; NULL = none. */
const struct kmodtree_file *kmodtree_find(const struct kmodtree *t, const char *module, size_t *n);

/*
 * kmodfile - the file of a kernel module with its debug information, and the
 * addresses in it of the functions of the recorded module.
 *
 * A capture has no build IDs of modules, so another build of the same release
 * cannot be excluded. A file is checked for
 *
 *   - the recorded release in its "vermagic" (a debug file has no bytes there:
 *     then its directory decides);
 *   - the build ID of the loaded module, if this machine is still the recorded
 *     one;
 *   - the recorded functions, with the recorded distances in each section, and
 *     none longer than there was room for.
 *
 * A file that contradicts any of these is not used. A function is identified by
 * its name; if several have that name, by its distance from another function of
 * its section. If neither identifies it, it stays unknown.
 */

struct kmodfile_opts {
	const struct kmodtree *tree;
	int symfs; /* SYMFS of the tree: directory descriptor, -1 = none */
	const char *release; /* of the recorded kernel */
	const struct root
		*root; /* of the machine on which the module may still be loaded; NULL = it is not */
};

/* A recorded function. */
struct kmodfile_symbol {
	const struct cap_ksym *k;
	uint64_t vaddr, size; /* as in elfrel_layout() */
	uint64_t next; /* where the next function of its section begins; UINT64_MAX = there is none */
	uint32_t section;
	uint32_t times; /* 1 = its place is certain; else 0 (not found) or 2 (several have its name) */
};

struct kmodfile {
	struct elffile *file; /* NULL = none was found */
	struct kmodfile_symbol *symbols; /* by recorded address */
	size_t n;
	bool proven; /* by its build ID */
	char where[512]; /* path of the file */
	char missed[512]; /* without a file: why the first candidate was not used; "" = there was none */
};

/*
 * Find the file of MODULE. KSYMS are its N recorded functions, ascending by
 * address and distinct; they must outlive *RET. Finding nothing is not an
 * error. -ENOMEM. Release with kmodfile_close(), even on failure.
 */
int kmodfile_find(const struct kmodfile_opts *o, const char *module, const struct cap_ksym *const *ksyms,
	size_t n, struct kmodfile *ret, struct err *e);
void kmodfile_close(struct kmodfile *f); /* a zeroed one is fine */

/*
 * Convert the recorded address ADDR to the file's address as in
 * elfrel_layout(). Returns false if it is not certain.
 */
bool kmodfile_vaddr(const struct kmodfile *f, uint64_t addr, uint64_t *vaddr);

/*
 * vmlinux - the kernel's own file with its debug information, for lines and
 * inlined calls of kernel frames.
 *
 * It is used only if its build ID is that of the recorded kernel
 * (/sys/kernel/notes). A kernel is moved when it boots (KASLR); the difference
 * between the address of _stext in the capture and in the file says by how
 * much. For modules see kmodfile_*().
 *
 * Unless a file is named, these places are searched, each first under SYMFS if
 * one is given:
 *
 *	.build-id/xx/yyyy.debug in each debug directory, then in /usr/lib/debug
 *	/usr/lib/debug/boot/vmlinux-RELEASE
 *	/usr/lib/debug/lib/modules/RELEASE/vmlinux, then with /usr before /lib
 *	/lib/modules/RELEASE/build/vmlinux, /lib/modules/RELEASE/vmlinux
 *	/boot/vmlinux-RELEASE
 */

struct vmlinux_opts {
	const char *file; /* --vmlinux: use only this file; NULL = search */
	int symfs; /* directory descriptor, -1 = none */
	const char *const *dirs; /* --debug-dir, before /usr/lib/debug */
	size_t n_dirs;
};

struct vmlinux {
	struct elffile *file; /* NULL = none was found */
	uint64_t slide; /* recorded address - file address; wraps */
	char where[512]; /* path of the file */
	char missed[512]; /* without a file: why the first candidate was not used; "" = there was none */
};

/*
 * Find the file of the kernel of HOST. Finding nothing is not an error unless
 * O->file is set: then -ENOENT etc. if it cannot be opened, and -EINVAL if it
 * is that of another kernel or the capture lacks the build ID or address of its
 * kernel. Release with vmlinux_close(), even on failure.
 */
int vmlinux_find(
	const struct vmlinux_opts *o, const struct cap_host *host, struct vmlinux *ret, struct err *e);
void vmlinux_close(struct vmlinux *v); /* a zeroed one is fine */

/*
 * Convert the kernel address ADDR to the file's address. Returns false if it is
 * not code of the kernel image.
 */
bool vmlinux_vaddr(const struct vmlinux *v, uint64_t addr, uint64_t *vaddr);

#endif
