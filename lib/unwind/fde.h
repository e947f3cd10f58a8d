/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fde - the functions that contain given addresses of an ELF file, by its call
 * frame information: where they begin and end, but no names.
 *
 * Compilers write an FDE for each function, and strip(1) keeps .eh_frame. An FDE
 * is found by the sorted table in .eh_frame_hdr (Linux Standard Base, section
 * 10.6.2). The table is untrusted and may lack entries: an FDE must begin where
 * the table says and cover the address, and for addresses without such an FDE all
 * entries of .eh_frame and .debug_frame are read. So an FDE that covers an
 * address is always found, and the result for an address does not depend on the
 * others. (Part 2 of a function, "f.cold", has an FDE of its own, as it has a
 * symbol.)
 */
#ifndef STACKTOOLS_UNWIND_FDE_H
#define STACKTOOLS_UNWIND_FDE_H

#include "base/err.h"
#include "elf/file.h"

struct fde_range {
	uint64_t start, end; /* end exclusive; 0 and 0 = no FDE covers the address */
	bool signal; /* of a trampoline for signals: its FDE may begin one byte before the function */
};

/*
 * Set RET[i] for each of the N ascending VADDRS of F. DEBUG (may be NULL) is its
 * debug file, whose .debug_frame is read too. If several FDEs cover an address,
 * an entry of the table counts first, then the FDE that begins last. Sections of
 * more than MAX_BYTES are not read. Malformed entries are skipped; -ENOMEM is the
 * only error.
 */
int fde_ranges(const struct elffile *f, const struct elffile *debug, const uint64_t *vaddrs, size_t n,
	uint64_t max_bytes, struct fde_range *ret, struct err *e);

#endif
