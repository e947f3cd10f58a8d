/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fde - the functions that contain given addresses of an ELF file, by its call
 * frame information: where they begin and end, but no names.
 *
 * Compilers write an FDE for each function, and strip(1) keeps .eh_frame. An FDE
 * is found by the sorted table in .eh_frame_hdr (Linux Standard Base, section
 * 10.6.2). The table is untrusted: an FDE must begin where the table says and
 * cover the address. If it does not begin there, or if there is no table, all of
 * .eh_frame is read. An FDE that a table lacks is not found: C++ exceptions do not
 * find it either, and reading all of a large .eh_frame takes as long as everything
 * else. The result for an address does not depend on the others. (A second part
 * of a function, "f.cold", has an FDE of its own, as it has a symbol.)
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
 * Set RET[i] for each of the N ascending VADDRS of F. The .debug_frame of F, and
 * of DEBUG, its debug file (may be NULL), have the addresses that .eh_frame does
 * not cover. If several FDEs cover an address, an entry of the table counts first,
 * then the FDE that begins last. Sections of
 * more than MAX_BYTES are not read. Malformed entries are skipped; -ENOMEM is the
 * only error.
 */
int fde_ranges(const struct elffile *f, const struct elffile *debug, const uint64_t *vaddrs, size_t n,
	uint64_t max_bytes, struct fde_range *ret, struct err *e);

#endif
