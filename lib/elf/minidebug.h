/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * minidebug - the ELF file inside another one's .gnu_debugdata.
 *
 * Distributions put symbols of functions there that .dynsym has not, packed
 * by xz(1): "MiniDebugInfo" of gdb's manual. Takes memory and pread(2) and
 * nothing else of the kernel, so that it works inside a sandbox.
 */
#ifndef STACKTOOLS_ELF_MINIDEBUG_H
#define STACKTOOLS_ELF_MINIDEBUG_H

#include "elf/file.h"

struct minidebug {
	struct elffile *elf; /* over BYTES */
	void *bytes;
	size_t len;
};

/*
 * Unpack what F has: 1 and *RET, or 0 where it has none. MAX_BYTES (0 = 256
 * MiB) bounds what comes out, -E2BIG beyond it; the decoder takes 128 MiB at most, -EOPNOTSUPP
 * for a stream that wants more. -EINVAL for what is no xz stream or no ELF
 * file, or one of another build ID or machine. Release with minidebug_close().
 */
int minidebug_open(const struct elffile *f, uint64_t max_bytes, struct minidebug *ret, struct err *e);
void minidebug_close(struct minidebug *m); /* a zeroed one is fine */

#endif
