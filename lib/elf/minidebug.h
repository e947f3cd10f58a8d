/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * minidebug - the ELF file inside the .gnu_debugdata section of another one.
 *
 * Distributions store symbols of functions there that .dynsym lacks, compressed
 * with xz(1): "MiniDebugInfo" in gdb's manual. Besides allocating memory, it
 * only calls pread(2), so that it works inside a sandbox.
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
 * Decompress .gnu_debugdata of F. Returns 1 and sets *RET, or 0 if F has none.
 * Output above MAX_BYTES (0 = 256 MiB) is -E2BIG. The decoder uses at most 128
 * MiB; -EOPNOTSUPP if the stream needs more. -EINVAL if it is not an xz stream
 * or not an ELF file, or has another build ID or machine than F. Release *RET
 * with minidebug_close().
 */
int minidebug_open(const struct elffile *f, uint64_t max_bytes, struct minidebug *ret, struct err *e);
void minidebug_close(struct minidebug *m); /* a zeroed one is fine */

#endif
