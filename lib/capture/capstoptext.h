/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capstoptext - where user stacks stopped, as a table for people.
 */
#ifndef STACKTOOLS_CAPSTOPTEXT_H
#define STACKTOOLS_CAPSTOPTEXT_H

#include "base/out.h"
#include "capture/capstops.h"

/* The first of STOPS, which are C's, with a heading; nothing where there are none. */
void capstoptext_put(struct out *o, const struct capread *c, const struct capstops *stops);

#endif
