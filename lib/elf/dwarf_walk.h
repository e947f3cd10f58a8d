/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_walk - the functions and inlined calls of one unit that cover given
 * addresses.
 *
 * The entries of a unit are stepped over from the first to the last; what
 * cannot lead to an address is jumped over where DW_AT_sibling allows it. Names
 * are not looked at: what is found are entries, by their offset.
 */
#ifndef STACKTOOLS_ELF_DWARF_WALK_H
#define STACKTOOLS_ELF_DWARF_WALK_H

#include "elf/dwarf_entries.h"

#define DWWALK_NONE UINT32_MAX

/* A function or an inlined call that covers some address. */
struct dwwalk_node {
	uint64_t low; /* of a function: where it begins */
	uint32_t at; /* its offset in the unit */
	uint32_t parent; /* what it is inlined into, an index; DWWALK_NONE = it is a function */
};

/* What was found for an address. */
struct dwwalk_place {
	uint64_t size; /* of the function, all ranges together */
	uint32_t node; /* the innermost, DWWALK_NONE = nothing covers it */
	uint32_t function;
	bool padding; /* nothing does, but right before it a function ends */
};

struct dwwalk_level {
	uint32_t node, function;
};

struct dwwalk {
	const struct dwbases *bases;
	const struct dwabbrev_table *table;
	struct rd unit; /* its bytes with the head; one NUL behind them */
	const uint64_t *addrs; /* ascending */
	size_t n;
	bool thorough; /* jump over nothing: functions inside types and inside functions are found too */
	struct dwwalk_place *places; /* for N addresses; the caller's */

	/* out, and used again by the next walk; dwwalk_free() */
	struct dwwalk_node *nodes;
	size_t n_nodes, nodes_cap;
	uint64_t entries; /* looked at, in all walks */
	uint64_t marks_left; /* how often an address may still be found to be covered */
	struct dwspans spans;
	struct dwwalk_level *levels;
	size_t levels_cap, cursor;
};

/*
 * 0, -EINVAL when the entries are malformed, -ENOMEM; what was found until then counts. The
 * function with the smallest ranges wins, of equal ones the first.
 */
int dwwalk_run(struct dwwalk *w, struct err *e);
void dwwalk_free(struct dwwalk *w); /* its arrays */

/*
 * dwcalls - names and calls of the functions of one unit, each read once.
 */

struct dwcalls_one {
	struct dwname name;
	struct dwcall call;
	bool known;
};

struct dwcalls {
	/* of the unit at hand; the caller's */
	struct dwnames *names;
	struct dwinfo *info;
	struct dwunit *unit;
	const struct dwabbrev_table *table;
	struct rd bytes; /* its bytes with the head; one NUL behind them */

	struct dwcalls_one *list;
	size_t n, cap;
};

int dwcalls_reset(struct dwcalls *c, size_t n); /* N functions, of which nothing is known. -ENOMEM */
void dwcalls_free(struct dwcalls *c);

/* Number I (below N), whose entry stands at offset AT of the unit. */
const struct dwcalls_one *dwcalls_get(struct dwcalls *c, size_t i, size_t at);

#endif
