/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compile - the compiler from the call frame information of an ELF file to an
 * unwind table.
 *
 * Reads .eh_frame (found by section, else by PT_GNU_EH_FRAME) and .debug_frame,
 * compressed or not; .eh_frame wins where both cover an address. Formats: DWARF
 * 5, section 6.4; Linux Standard Base, section 10.6 (.eh_frame); of machines,
 * see unwind/machine.h. The file is untrusted: sizes are checked before
 * memory is allocated, pointers before they are followed, and the size of the
 * section bounds the work.
 */
#ifndef STACKTOOLS_UNWIND_COMPILE_H
#define STACKTOOLS_UNWIND_COMPILE_H

#include "elf/file.h"
#include "unwind/table.h"

/*
 * unwindrows - an unwind table under construction, from rows in ascending order
 * of their addresses.
 *
 * A row whose rule is already in force is not added. Rules are numbered in
 * order of appearance. Segments are written when they are full, so that little
 * more memory is used than for the table.
 */

struct unwindrows;

int unwindrows_open(struct unwindrows **ret, struct err *e);
void unwindrows_close(struct unwindrows *r); /* NULL is fine */

/*
 * RULE is in force from PC on; an all-zero rule means that there is no unwind
 * information. PC must be above that of the row before. -E2BIG above
 * UNWINDTAB_SEGS_MAX, -ENOMEM. Above UNWINDTAB_RULES_MAX rules, or
 * UNWIND_ROWS_MAX rows in a segment, the rule becomes UNWIND_CFA_UNSUPPORTED
 * and is counted (UNWINDTAB_TOO_MANY).
 */
int unwindrows_add(struct unwindrows *r, uint64_t pc, const struct unwind_rule *rule, struct err *e);

/*
 * Create the sealed table of all rows in new memory, released with free(3).
 * HEAD has the fields that only the compiler knows: machine, n_cies, n_fdes,
 * n_loads (of LOADS), section, left. No rows may be added afterwards.
 */
int unwindrows_finish(struct unwindrows *r, const struct unwindtab_head *head,
	const struct unwindtab_load *loads, uint8_t **ret, size_t *len, struct err *e);

#define UNWINDCOMP_SECTION_MAX (UINT64_C(512) << 20)

/*
 * Compile F. On success *RET has *LEN bytes in the form of unwind/table.h,
 * released with free(3). A file without call frame information gives a table
 * without segments. -EOPNOTSUPP for a machine other than x86-64, i386 and arm64, -E2BIG above a
 * limit, -EINVAL for a file that is malformed as a whole. A single malformed
 * CIE or FDE is skipped and counted.
 */
int unwindcomp(const struct elffile *f, uint8_t **ret, size_t *len, struct err *e);

/* The same for the file FD, which it closes. */
int unwindcomp_fd(int fd, uint8_t **ret, size_t *len, struct err *e);

#endif
