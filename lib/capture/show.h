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
 * cap_json - a capture's contents, frames and samples aside, as one JSON
 * object.
 *
 * Names as in docs/capinfo.1. Numbers are exact and may pass 2^53; addresses
 * and build IDs are strings of hexadecimal digits.
 */

/* One line, with its newline. */
void cap_json_put(struct out *o, const struct cap_reader *c, const struct cap_stats *s,
	const struct cap_stop_places *stops);

/*
 * cap_files_text - files of a capture by their build IDs, as lines.
 */

/* Of each of FILES, which are C's: its build ID ("-" where it has none), a space and its path, escaped. */
void cap_files_text_put(struct out *o, const struct cap_reader *c, const struct cap_stack_files *files);

/*
 * cap_maps_text - a process's mappings as /proc/PID/maps shows them.
 */

/*
 * Those that process PROC (an id) had at the end: the newest at each address,
 * sorted by it. 0 or -ENOMEM.
 */
int cap_maps_text_put(struct out *o, const struct cap_reader *c, uint32_t proc);

/*
 * cap_stops_text - where user stacks stopped, as a table for people.
 */

/* The first of STOPS, which are C's, with a heading; nothing where there are none. */
void cap_stops_text_put(struct out *o, const struct cap_reader *c, const struct cap_stop_places *stops);

/*
 * cap_threads_text - the threads of a capture, by their ids in the recorder's PID
 * namespace and in their own, as lines.
 */

/*
 * A heading, and a line for each thread that had a wait or a name, sorted by process
 * and thread: PID, TID, the same as the thread itself sees them ("-" where
 * they are not known), waits, off-CPU time, name. With PID (not 0) of that one
 * alone. 0 or -ENOMEM.
 */
int cap_threads_text_put(struct out *o, const struct cap_reader *c, uint64_t pid);

#endif
