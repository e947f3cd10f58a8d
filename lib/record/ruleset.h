/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ruleset - the distinct rules of a recording, numbered, in an array that BPF
 * reads.
 *
 * A rule keeps its number as long as somebody holds it; each take counts.
 * Rule 0 (all zero: no unwind information) is always there and not counted.
 * Not for several threads.
 */
#ifndef STACKTOOLS_RULESET_H
#define STACKTOOLS_RULESET_H

#include "base/err.h"

#include "unwind_abi.h"

struct ruleset;

/* On success *RET is the caller's. */
int ruleset_open(struct ruleset **ret, struct err *e);
void ruleset_close(struct ruleset *r); /* NULL is fine */
int ruleset_fd(const struct ruleset *r); /* of the array of UNWIND_RULES_MAX rules */

/* The number of RULE, the same for equal rules. -ENOSPC when every number is taken. */
int ruleset_take(struct ruleset *r, const struct unwind_rule *rule, uint16_t *ret);

/* Undo one take. With the last one the number is free, and is rule 0 until it is taken again. */
void ruleset_give(struct ruleset *r, uint16_t number);

/* The rule of that number, until it is given. */
const struct unwind_rule *ruleset_at(const struct ruleset *r, uint16_t number);

uint32_t ruleset_count(const struct ruleset *r); /* distinct ones, without rule 0 */
uint64_t ruleset_bytes(void); /* that the kernel holds */

#endif
