/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwindrows - builds an unwind table from rows in ascending order of their
 * addresses.
 *
 * A row whose rule is in force already is not added. Rules are numbered as
 * they come; segments are written as they fill, so that memory is the table
 * and little more.
 */
#ifndef STACKTOOLS_UNWINDROWS_H
#define STACKTOOLS_UNWINDROWS_H

#include "unwind/unwindtab.h"

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

uint64_t unwindrows_left(const struct unwindrows *r); /* rows beyond a limit */

/*
 * The table of all rows in fresh memory (free(3) it), sealed. Of HEAD, what
 * the compiler knows is taken: machine, n_cies, n_fdes, n_loads (of LOADS),
 * section, left. Nothing may be added afterwards.
 */
int unwindrows_finish(struct unwindrows *r, const struct unwindtab_head *head,
	const struct unwindtab_load *loads, uint8_t **ret, size_t *len, struct err *e);

#endif
