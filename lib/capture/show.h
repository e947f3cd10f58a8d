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
 * cap_json - a capture's contents as one JSON object, without frames and samples.
 *
 * docs/capinfo.1 lists the names. Numbers are exact and may exceed 2^53;
 * addresses and build IDs are strings of hexadecimal digits.
 */

/* Write it as one line, with a newline. */
void cap_json_put(struct out *o, const struct cap_reader *c, const struct cap_stats *s,
	const struct cap_stop_places *stops);

/*
 * cap_files_text - files of a capture with their build IDs, as lines.
 */

/* For each of FILES, which belong to C: its build ID ("-" if it has none), a space and its escaped path. */
void cap_files_text_put(struct out *o, const struct cap_reader *c, const struct cap_stack_files *files);

/*
 * cap_maps_text - a process's mappings as /proc/PID/maps shows them.
 */

/*
 * The mappings that process PROC (an id) had at the end: the newest at each
 * address, sorted by address. 0 or -ENOMEM.
 */
int cap_maps_text_put(struct out *o, const struct cap_reader *c, uint32_t proc);

/*
 * cap_stops_text - where the walks of user stacks stopped, as a text table.
 */

/* The first of STOPS, which belong to C, with a heading; nothing if there are none. */
void cap_stops_text_put(struct out *o, const struct cap_reader *c, const struct cap_stop_places *stops);

/*
 * cap_threads_text - the threads of a capture, with their ids in the recorder's
 * PID namespace and in their own, as lines.
 */

/*
 * A heading, and a line for each thread that had a wait or a name, sorted by
 * process and thread: PID, TID, the same as the thread itself sees them, waits,
 * off-CPU time, life, time on the CPU, runnable, blocked, the sum of these three,
 * name; "-" for what is not known. If PID is not 0, only the threads of that
 * process. 0 or -ENOMEM.
 */
int cap_threads_text_put(struct out *o, const struct cap_reader *c, uint64_t pid);

#endif
