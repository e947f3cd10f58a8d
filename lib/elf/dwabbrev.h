/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwabbrev - one abbreviation table, made ready for stepping over entries.
 *
 * Format: DWARF 5, section 7.5.3. For each abbreviation it is worked out once
 * how its entries are stepped over (one addition where all forms are of fixed
 * size), and where the attributes that lead to code stand, so that most
 * entries cost a few instructions.
 */
#ifndef STACKTOOLS_DWABBREV_H
#define STACKTOOLS_DWABBREV_H

#include "base/err.h"
#include "elf/dwform.h"

/* What an entry means to a search for code. */
enum dwabbrev_kind {
	DWK_OTHER, /* cannot lead to code: its children need not be looked at */
	DWK_THROUGH, /* namespaces, modules: its children are looked at */
	DWK_FUNCTION,
	DWK_INLINED,
	DWK_BLOCK, /* lexical, try and catch blocks */
};

struct dwabbrev_attr {
	uint16_t name, form; /* DW_AT_*, DW_FORM_* */
	int64_t implicit;
};

/* ADD bytes, then a value to be stepped over as SKIP tells; DWSKIP_FIXED is the last. */
struct dwabbrev_step {
	uint32_t add;
	uint32_t skip;
};

/* Where the value of an attribute stands: behind STEP steps that are not fixed and ADD more bytes. */
struct dwabbrev_place {
	uint16_t attr; /* index among the abbreviation's; DWABBREV_NONE = it has no such attribute */
	uint16_t step;
	uint32_t add;
};

#define DWABBREV_NONE UINT16_MAX
#define DWABBREV_VARIES UINT32_MAX

struct dwabbrev {
	uint64_t code;
	uint32_t attrs, n_attrs; /* index in the table's attrs */
	uint32_t steps; /* index in the table's steps */
	uint32_t size; /* of all values, or DWABBREV_VARIES */
	uint16_t tag;
	uint8_t kind; /* enum dwabbrev_kind */
	bool children;
	bool code_range; /* has DW_AT_low_pc or DW_AT_ranges */
	struct dwabbrev_place sibling, low_pc, high_pc, ranges;
};

struct dwabbrev_table {
	struct dwabbrev *list; /* ascending by code */
	struct dwabbrev_attr *attrs;
	struct dwabbrev_step *steps;
	size_t n, n_attrs, n_steps, cap, attrs_cap, steps_cap;
	bool dense; /* list[code - 1] */
	bool functions; /* some entry may be a function with code */
};

/*
 * The table that LEN bytes at P begin with, or, with CODE, as much of it as leads to
 * that abbreviation. -EINVAL when it is malformed, -ENODATA when it does not end
 * there, -ENOMEM. Memory is at most some 60 times the bytes. *USED (may be NULL)
 * are the bytes it took.
 */
int dwabbrev_parse(const void *p, size_t len, const struct dwshape *shape, uint64_t code,
	struct dwabbrev_table *ret, size_t *used, struct err *e);
void dwabbrev_release(struct dwabbrev_table *t); /* a zeroed one is fine */

const struct dwabbrev *dwabbrev_search(const struct dwabbrev_table *t, uint64_t code);

/* The abbreviation CODE, NULL = there is none. */
static inline const struct dwabbrev *dwabbrev_find(const struct dwabbrev_table *t, uint64_t code)
{
	if (t->dense)
		return code - 1 < t->n ? &t->list[code - 1] : NULL;
	return dwabbrev_search(t, code);
}

size_t dwabbrev_bytes(const struct dwabbrev_table *t);

/*
 * Step R over the attributes of an entry of A. The bytes must have one NUL
 * behind them (struct dwpiece): strings and numbers stop there. r->bad where it ends too early.
 */
void dwabbrev_step_slow(
	const struct dwabbrev_table *t, const struct dwabbrev *a, const struct dwshape *shape, struct rd *r);

static inline void dwabbrev_step(
	const struct dwabbrev_table *t, const struct dwabbrev *a, const struct dwshape *shape, struct rd *r)
{
	if (a->size <= rd_left(r))
		r->p += a->size;
	else
		dwabbrev_step_slow(t, a, shape, r);
}

static inline bool dwabbrev_has(const struct dwabbrev_place *p)
{
	return p->attr != DWABBREV_NONE;
}

/* The value at PLACE of an entry of A whose attributes begin at R; kind DWV_NONE where there is none or it
 * ends too early. */
struct dwvalue dwabbrev_value(const struct dwabbrev_table *t, const struct dwabbrev *a,
	const struct dwabbrev_place *place, const struct dwshape *shape, const struct rd *r);

#endif
