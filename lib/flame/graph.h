/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * graph - a flame graph as a page. Its data is
 *
 *	{"title": "...", "unit": "us", "differential": false, "icicle": false,
 *	 "sum": "123", "sumBefore": "0", "nodes": N, "names": ["...", ...],
 *	 "looks": base64, "tree": base64}
 *
 * "looks" has a byte for each name: its class in the upper three bits, its tone
 * in the lower five. "tree" has for each node in preorder, the root first, three
 * or four unsigned LEB128 numbers: the levels between it and the child that the
 * node before would have, its name, its own value, and if differential its own
 * value before. Frequent names have small numbers. If colours are by kind, "families" are those of
 * flame/kinds.h, and "kinds" has a byte for each node, the index of its family.
 */
#ifndef STACKTOOLS_FLAME_GRAPH_H
#define STACKTOOLS_FLAME_GRAPH_H

#include "base/out.h"
#include "flame/tree.h"

struct flame_opts {
	const char *title, *unit;
	bool differential, icicle;
	bool kinds; /* the colour of a frame says what it waits for (flame/kinds.h) */
	/* an SVG only */
	uint64_t width; /* in pixels */
	double min; /* omit narrower frames: part of the whole */
};

/* 0 or -ENOMEM; the out keeps errors of writing. */
int graph_put(struct out *o, const struct flametree *t, const struct flame_opts *opts, struct err *e);

#endif
