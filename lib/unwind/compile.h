/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compile - from an ELF file's call frame information to an unwind table.
 *
 * .eh_frame is read (found by section, else by PT_GNU_EH_FRAME); .debug_frame,
 * compressed or not, where there is no .eh_frame with an FDE. Formats: DWARF 5,
 * section 6.4; Linux Standard Base, section 10.6 (.eh_frame); System V ABI for
 * x86-64, section 3.7. The file is nobody's friend: sizes are checked before
 * memory is taken, pointers before they are followed, work is bounded by the
 * size of the section.
 */
#ifndef STACKTOOLS_UNWIND_COMPILE_H
#define STACKTOOLS_UNWIND_COMPILE_H

#include "elf/file.h"
#include "unwind/table.h"

/*
 * unwindrows - builds an unwind table from rows in ascending order of their
 * addresses.
 *
 * A row whose rule is in force already is not added. Rules are numbered as
 * they come; segments are written as they fill, so that memory is the table
 * and little more.
 */

struct unwindrows;

int unwindrows_open(struct unwindrows **ret, struct err *e);
void unwindrows_close(struct unwindrows *r); /* NULL is fine */

/*
 * From PC on RULE is in force; an all-zero one says that nothing is known. PC
 * is above that of the row before.
 * -E2BIG beyond UNWINDTAB_SEGS_MAX, -ENOMEM. Beyond UNWINDTAB_RULES_MAX rules,
 * or UNWIND_ROWS_MAX rows of a segment, the rule becomes
 * UNWIND_CFA_UNSUPPORTED, which unwindrows_left() counts.
 */
int unwindrows_add(struct unwindrows *r, uint64_t pc, const struct unwind_rule *rule, struct err *e);

/*
 * The table of all rows in fresh memory (free(3) it), sealed. Of HEAD, what
 * the compiler knows is taken: machine, n_cies, n_fdes, n_loads (of LOADS),
 * section, left. Nothing may be added afterwards.
 */
int unwindrows_finish(struct unwindrows *r, const struct unwindtab_head *head,
	const struct unwindtab_load *loads, uint8_t **ret, size_t *len, struct err *e);

#define UNWINDCOMP_SECTION_MAX (UINT64_C(512) << 20)

/*
 * Compile F. On success *RET (*LEN bytes, in the form of unwind/table.h) is the
 * caller's, to be freed. A file without any call frame information gives a
 * table of no segments. -EOPNOTSUPP for a machine other than x86-64, -E2BIG
 * beyond a limit, -EINVAL for a file that is malformed as a whole; one bad CIE
 * or FDE is left out and counted.
 */
int unwindcomp(const struct elffile *f, uint8_t **ret, size_t *len, struct err *e);

#endif
