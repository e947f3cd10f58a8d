/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_walk - the functions and inlined calls of one unit that cover given
 * addresses.
 *
 * Goes over the entries of a unit from first to last, and jumps over those that
 * cannot lead to an address if DW_AT_sibling allows it. It does not read names:
 * it finds entries, by their offset.
 */
#ifndef STACKTOOLS_ELF_DWARF_WALK_H
#define STACKTOOLS_ELF_DWARF_WALK_H

#include "elf/dwarf_entries.h"

#define DWARF_WALK_NONE UINT32_MAX

/* A function or an inlined call that covers some address. */
struct dwarf_walk_node {
	uint64_t low; /* of a function: where it begins */
	uint32_t at; /* offset in the unit */
	uint32_t parent; /* index of the node that it is inlined into; DWARF_WALK_NONE = it is a function */
};

/* What was found for an address. */
struct dwarf_walk_place {
	uint64_t size; /* of the function: sum of all ranges */
	uint32_t node; /* the innermost; DWARF_WALK_NONE = nothing covers the address */
	uint32_t function;
	bool padding; /* nothing covers it, but a function ends right before it */
};

struct dwarf_walk_level {
	uint32_t node, function;
};

struct dwarf_walk {
	const struct dwarf_bases *bases;
	const struct dwarf_abbrev_table *table;
	struct rd unit; /* its bytes with the head, followed by one NUL */
	const uint64_t *addrs; /* ascending */
	size_t n;
	bool thorough; /* do not jump: find functions inside types and inside functions too */
	struct dwarf_walk_place *places; /* for N addresses; owned by the caller */

	/* output, reused by the next walk; released by dwarf_walk_free() */
	struct dwarf_walk_node *nodes;
	size_t n_nodes, nodes_cap;
	uint64_t entries; /* visited in all walks */
	uint64_t marks_left; /* how often an address may still be found to be covered */
	struct dwarf_span_list spans;
	struct dwarf_walk_level *levels;
	size_t levels_cap, cursor;
};

/*
 * 0, -EINVAL if the entries are malformed, -ENOMEM; what was found before an
 * error is valid. The function with the smallest ranges wins; of equal ones the
 * first.
 */
int dwarf_walk_run(struct dwarf_walk *w, struct err *e);
void dwarf_walk_free(struct dwarf_walk *w); /* frees its arrays */

/*
 * dwarf_call_table - names and calls of the functions of one unit, each read
 * once.
 */

struct dwarf_call_table_one {
	struct dwarf_name name;
	struct dwarf_call call;
	bool known;
};

struct dwarf_call_table {
	/* of the current unit; owned by the caller */
	struct dwarf_name_table *names;
	struct dwarf_info *info;
	struct dwarf_unit *unit;
	const struct dwarf_abbrev_table *table;
	struct rd bytes; /* its bytes with the head, followed by one NUL */

	struct dwarf_call_table_one *list;
	size_t n, cap;
};

int dwarf_call_table_reset(struct dwarf_call_table *c, size_t n); /* prepare for N functions; -ENOMEM */
void dwarf_call_table_free(struct dwarf_call_table *c);

/* Function I (below N), whose entry is at offset AT of the unit. */
const struct dwarf_call_table_one *dwarf_call_table_get(struct dwarf_call_table *c, size_t i, size_t at);

#endif
