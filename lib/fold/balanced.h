/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * balanced - names whose brackets stay balanced: a name loses its arguments, not what is behind the
 * first "(" in it.
 *
 * Brackets are (), [], {} and <>. A bracket without a partner is an ordinary character, and so are
 * those of "operator()", "operator<" and the other operators, of "->" and of a character in quotes.
 * The time is linear in the length and the memory constant: a name with more than BALANCED_DEPTH
 * brackets open at once stays as it is.
 */
#ifndef STACKTOOLS_FOLD_BALANCED_H
#define STACKTOOLS_FOLD_BALANCED_H

#include "base/base.h"
#include "fold/script.h"

#define BALANCED_DEPTH 1024

/* A walk over the characters of a name. */
struct balanced {
	const char *p;
	size_t len, at;
	uint32_t depth; /* open brackets */
	uint32_t open[BALANCED_DEPTH]; /* their positions */
	uint32_t kinds[4]; /* how many of each kind are open */
	uint32_t alone[BALANCED_DEPTH]; /* brackets that are never closed, in order */
	uint32_t n_alone, next_alone;
	bool too_deep;
};

/*
 * The functions of "a->b->c", an inline chain, one after the other. An arrow inside brackets, of
 * "operator->" or behind a blank separates nothing; arrows at the end are dropped.
 */
void balanced_chain(struct balanced *b, const char *p, size_t len);
bool balanced_next(struct balanced *b, struct perfscript_str *function);

/*
 * Remove the argument list at the end of the function name at P, with the qualifiers behind it, in
 * place. Returns the new length.
 */
size_t balanced_cut(char *p, size_t len);

#endif
