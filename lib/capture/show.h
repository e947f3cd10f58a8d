/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * show - the contents of a capture as text and as JSON.
 */
#ifndef STACKTOOLS_CAPTURE_SHOW_H
#define STACKTOOLS_CAPTURE_SHOW_H

#include "base/out.h"
#include "capture/reader.h"
#include "capture/stats.h"

/*
 * capjson - a capture's contents, frames and samples aside, as one JSON
 * object.
 *
 * Names as in docs/capinfo.1. Numbers are exact and may pass 2^53; addresses
 * and build IDs are strings of hexadecimal digits.
 */

/* One line, with its newline. */
void capjson_put(
	struct out *o, const struct capread *c, const struct capstats *s, const struct capstops *stops);

/*
 * capfiletext - files of a capture by their build IDs, as lines.
 */

/* Of each of FILES, which are C's: its build ID ("-" where it has none), a space and its path, escaped. */
void capfiletext_put(struct out *o, const struct capread *c, const struct capfiles *files);

/*
 * capmaptext - a process's mappings as /proc/PID/maps shows them.
 */

/*
 * Those that process PROC (an id) had at the end: the newest at each address,
 * sorted by it. 0 or -ENOMEM.
 */
int capmaptext_put(struct out *o, const struct capread *c, uint32_t proc);

/*
 * capstoptext - where user stacks stopped, as a table for people.
 */

/* The first of STOPS, which are C's, with a heading; nothing where there are none. */
void capstoptext_put(struct out *o, const struct capread *c, const struct capstops *stops);

/*
 * capthreadtext - the threads of a capture, by their ids in the recorder's PID
 * namespace and in their own, as lines.
 */

/*
 * A heading, and a line for each thread that had a wait or a name, sorted by process
 * and thread: PID, TID, the same as the thread itself sees them ("-" where
 * they are not known), waits, off-CPU time, name. With PID (not 0) of that one
 * alone. 0 or -ENOMEM.
 */
int capthreadtext_put(struct out *o, const struct capread *c, uint64_t pid);

#endif
