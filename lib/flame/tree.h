/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree - folded lines merged into the tree of a flame graph.
 *
 *	outermost;...;innermost VALUE
 *	outermost;...;innermost BEFORE AFTER	differential
 *
 * Frames are separated by ';', the values are whole numbers behind one blank each. Names may hold
 * any other byte. Nothing is pruned, and no sum is rounded: the sum of all values is at most
 * FLAMETREE_SUM_MAX. Nothing recurses, so a stack may have any number of frames.
 */
#ifndef STACKTOOLS_FLAME_TREE_H
#define STACKTOOLS_FLAME_TREE_H

#include "base/err.h"
#include "base/intern.h"
#include "fold/script.h"

#define FLAMETREE_SUM_MAX ((uint64_t)INT64_MAX)

/* Node 0 is the root, of no name; the others follow in preorder, siblings by the bytes of their names. */
struct flametree_node {
	uint32_t name; /* of the root: 0, which means nothing */
	uint32_t parent; /* of the root: 0 */
	uint32_t end; /* the first node after its subtree */
	uint32_t depth; /* of the root: 0 */
	uint64_t self, sum; /* of the stacks that end here; of those that pass here, too */
	uint64_t self_before, sum_before; /* differential: the same of the first value */
};

struct flametree {
	struct intern names;
	struct flametree_node *nodes;
	uint32_t n; /* nodes */
	uint32_t depth; /* of the deepest node */
	uint64_t stacks; /* lines with a stack */
	uint64_t malformed; /* lines that were skipped */
	const char *bad_path; /* position of the first one */
	uint64_t bad_line;
	const char *bad_why;
};

/*
 * The tree of all lines of IN; DIFFERENTIAL: each has two values. Malformed lines are skipped and
 * counted. -EOVERFLOW if the sum is too great; -ENOMEM. Release with flametree_free(), also after
 * an error.
 */
int flametree_read(struct flametree *t, struct paragraphs *in, bool differential, struct err *e);
void flametree_free(struct flametree *t); /* a zeroed tree is fine */

#endif
