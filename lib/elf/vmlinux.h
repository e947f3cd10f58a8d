/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vmlinux - the kernel's own file with its debug information, for lines and
 * inlined calls of kernel frames.
 *
 * It is believed only if its build ID is the one that the recorded kernel told
 * (/sys/kernel/notes). A kernel is moved when it boots (KASLR): by how much,
 * the address of _stext says, in the capture and in the file. Modules lie
 * elsewhere: kmodfile.h.
 *
 * Places, where none is named, each under SYMFS first if one is given:
 *
 *   .build-id/xx/yyyy.debug in each directory of debug files, then /usr/lib/debug
 *   /usr/lib/debug/boot/vmlinux-RELEASE
 *   /usr/lib/debug/lib/modules/RELEASE/vmlinux, and with /usr before /lib
 *   /lib/modules/RELEASE/build/vmlinux, /lib/modules/RELEASE/vmlinux
 *   /boot/vmlinux-RELEASE
 */
#ifndef STACKTOOLS_VMLINUX_H
#define STACKTOOLS_VMLINUX_H

#include "elf/elffile.h"

struct vmlinux_opts {
	const char *file; /* --vmlinux: this one or none; NULL = search */
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
