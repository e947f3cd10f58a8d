/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * print - the waits of a capture with their frames, as perf script's text
 * or JSON.
 */
#ifndef STACKTOOLS_SYMBOLS_PRINT_H
#define STACKTOOLS_SYMBOLS_PRINT_H

#include "base/bytes.h"
#include "base/intern.h"
#include "base/out.h"
#include "capture/reader.h"
#include "symbols/files.h"
#include "symbols/frame.h"
#include "symbols/resolve.h"

/*
 * perf_text - waits and frames as text: the grammar of perf script(1), and
 * JSON, one object a line.
 *
 * The grammar, from perf's output and what its readers accept:
 *
 *   comm pid/tid [cpu] time: period event:
 *   <TAB><address in hex, 16 wide> symbol (inlined)
 *     <source file>:<line>
 *   <TAB><address in hex, 16 wide> symbol+0xoffset (module)
 *     <source file>:<line>
 *   <blank line>
 *
 * Lines that begin with '#' are comments to every reader. What comes from
 * the observed processes is escaped so that it stays within its field:
 *
 *   comm     no '#' first, no ';', and '_' for each space that begins or ends
 *            it or stands before a digit, so that no reader takes part of it
 *            for the PID; a comm of one byte is followed by two spaces, since
 *            readers want two bytes before the PID
 *   symbol   a line of text, "?" behind it where it is only the function before the address; one that begins
 * with '(' gets "::" before it, since readers take such a frame for a process name and drop it module   a
 * word; no white space; so is a source file
 *
 * Symbols and paths are cut at BUFTEXT_MAX bytes.
 *
 * Nothing here allocates but the buffer: check its `failed` at the end.
 */

/* What the stream contains, for its head. */
struct perf_text_totals {
	uint64_t records, waits, total_ns, lost;
};

/* Does C count lost waits, stacks or events? Any "lost.*" that is not 0, but those in nanoseconds. */
bool perf_text_is_loss(const struct cap_counter *c);

/* The sum of these. */
uint64_t perf_text_lost(const struct cap_reader *c);

struct wait_printer_record {
	uint64_t last_ns;
	const struct cap_sample *sample;
	struct stackids_span kernel, user; /* of `stacks` */
};

/* All of it is the caller's. */
struct wait_printer {
	const struct cap_reader *c;
	struct resolve *r; /* resolve_run() is over */
	struct stackids *stacks;
	struct wait_printer_record *records; /* in the order in which they are printed */
	size_t n_records;
	struct perf_text_totals totals;
	bool json, lines;
};

/* The name of the thread of S; *NS_TID is its number in its own PID namespace, 0 = unknown. */
const char *wait_printer_comm(const struct cap_reader *c, const struct cap_sample *s, uint32_t *ns_tid);

/* Head, files that were not used, records. 0 or -ENOMEM; what OUT could not write is told by out_flush(). */
int wait_printer_print(const struct wait_printer *w, struct out *out, struct err *e);

/*
 * name_coverage - how many frames, distinct addresses and files have their names
 * from where, and what it took.
 */

/* Zero it. */
struct name_coverage {
	uint64_t frames[FRAME_SOURCES], addresses[FRAME_SOURCES], files[FRAME_SOURCES];
	uint64_t unsure; /* frames with the name of the function before the address */
	uint64_t with_line, with_inlined, inlined; /* frames; calls that were inlined into these */
	struct idmap seen; /* (step, module) */
};

/* F stands for TIMES frames. 0 or -ENOMEM. */
int name_coverage_add(struct name_coverage *l, const struct frame *f, uint64_t times);
void name_coverage_free(struct name_coverage *l);

/* As lines for people, PREFIX before each; S may be NULL. */
void name_coverage_text(
	struct buf *b, const struct name_coverage *l, const struct modules_stats *s, const char *prefix);

#endif
