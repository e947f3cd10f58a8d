/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwindcomp - from an ELF file's call frame information to an unwind table.
 *
 * .eh_frame is read (found by section, else by PT_GNU_EH_FRAME); .debug_frame,
 * compressed or not, where there is no .eh_frame with an FDE. Formats: DWARF 5,
 * section 6.4; Linux Standard Base, section 10.6 (.eh_frame); System V ABI for
 * x86-64, section 3.7. The file is nobody's friend: sizes are checked before
 * memory is taken, pointers before they are followed, work is bounded by the
 * size of the section.
 */
#ifndef STACKTOOLS_UNWINDCOMP_H
#define STACKTOOLS_UNWINDCOMP_H

#include "elf/file.h"
#include "unwind/unwindtab.h"

#define UNWINDCOMP_SECTION_MAX (UINT64_C(512) << 20)

/*
 * Compile F. On success *RET (*LEN bytes, in the form of unwindtab.h) is the
 * caller's, to be freed. A file without any call frame information gives a
 * table of no segments. -EOPNOTSUPP for a machine other than x86-64, -E2BIG
 * beyond a limit, -EINVAL for a file that is malformed as a whole; one bad CIE
 * or FDE is left out and counted.
 */
int unwindcomp(const struct elffile *f, uint8_t **ret, size_t *len, struct err *e);

#endif
