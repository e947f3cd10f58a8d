/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * svg - a flame graph as one SVG: a picture everywhere, and in a browser a click
 * zooms to a frame and a search shows its share, by svg.js.
 *
 * Frames that are narrower than a part of the whole are omitted with all below
 * them; the picture says how many.
 */
#ifndef STACKTOOLS_FLAME_SVG_H
#define STACKTOOLS_FLAME_SVG_H

#include "base/result.h"
#include "flame/graph.h"

#define SVG_WIDTH_MIN 200
#define SVG_WIDTH_MAX 100000

extern const struct result_type svg_type;

/* 0 or -ENOMEM; the out keeps errors of writing. */
int svg_put(struct out *o, const struct flametree *t, const struct flame_opts *opts, struct err *e);

#endif
