/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kinds - what the stacks of a frame wait for, where the innermost frames say so: "[lock]", as fold
 * --kind-frames prints them. Similar kinds are one family, with a hue.
 */
#ifndef STACKTOOLS_FLAME_KINDS_H
#define STACKTOOLS_FLAME_KINDS_H

#include "flame/tree.h"

struct kind_family {
	const char *name;
	unsigned int hue, saturation; /* degrees, percent */
};

#define KIND_FAMILIES 12
extern const struct kind_family kind_families[KIND_FAMILIES]; /* 0: no kind */

/* The family that most of each frame's value is of, an index by node. NULL when memory runs out. free(3) it.
 */
uint8_t *kind_families_of(const struct flametree *t);

#endif
