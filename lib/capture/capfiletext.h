/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capfiletext - files of a capture by their build IDs, as lines.
 */
#ifndef STACKTOOLS_CAPFILETEXT_H
#define STACKTOOLS_CAPFILETEXT_H

#include "base/out.h"
#include "capture/capfiles.h"

/* Of each of FILES, which are C's: its build ID ("-" where it has none), a space and its path, escaped. */
void capfiletext_put(struct out *o, const struct capread *c, const struct capfiles *files);

#endif
