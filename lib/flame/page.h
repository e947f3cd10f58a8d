/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * page - a flame graph as one self-contained HTML page.
 *
 * The page is page.html with page.css, page.js and the tree as JSON, which is
 * written so that no name can end it: see frame_put_json(). Its policy
 * (Content-Security-Policy) allows this script and this style by their SHA-256
 * and nothing else.
 *
 *	{"title": "...", "unit": "us", "differential": false, "icicle": false,
 *	 "sum": "123", "sumBefore": "0", "nodes": N, "names": ["...", ...],
 *	 "looks": base64, "tree": base64}
 *
 * "looks" has a byte for each name: its class in the upper three bits, its tone
 * in the lower five. "tree" has for each node in preorder, the root first, three
 * or four unsigned LEB128 numbers: the levels between it and the child that the
 * node before would have, its name, its own value, and if differential its own
 * value before. Frequent names have small numbers.
 */
#ifndef STACKTOOLS_FLAME_PAGE_H
#define STACKTOOLS_FLAME_PAGE_H

#include "base/out.h"
#include "base/result.h"
#include "flame/tree.h"

struct flame_opts {
	const char *title, *unit;
	bool differential, icicle;
	/* an SVG only */
	uint64_t width; /* in pixels */
	double min; /* omit narrower frames: part of the whole */
};

extern const struct result_type page_type;

/* 0 or -ENOMEM; the out keeps errors of writing. */
int page_put(struct out *o, const struct flametree *t, const struct flame_opts *opts, struct err *e);

#endif
