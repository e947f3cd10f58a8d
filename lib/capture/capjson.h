/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capjson - a capture's contents, frames and samples aside, as one JSON
 * object.
 *
 * Names as in docs/capinfo.1. Numbers are exact and may pass 2^53; addresses
 * and build IDs are strings of hexadecimal digits.
 */
#ifndef STACKTOOLS_CAPJSON_H
#define STACKTOOLS_CAPJSON_H

#include "base/out.h"
#include "capture/capread.h"
#include "capture/capstats.h"
#include "capture/capstops.h"

/* One line, with its newline. */
void capjson_put(
	struct out *o, const struct capread *c, const struct capstats *s, const struct capstops *stops);

#endif
