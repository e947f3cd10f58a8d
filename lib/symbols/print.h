/* SPDX-License-Identifier: GPL-2.0-or-later */
/* print - the waits of a capture with their frames, as perf script text or JSON. */
#ifndef STACKTOOLS_SYMBOLS_PRINT_H
#define STACKTOOLS_SYMBOLS_PRINT_H

#include "base/bytes.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/out.h"
#include "capture/reader.h"
#include "symbols/files.h"
#include "symbols/frame.h"
#include "symbols/resolve.h"

/*
 * perf_text - waits and frames in the grammar of perf script(1), and as JSON, one object a line.
 *
 * The grammar, from perf's output and what its readers accept:
 *
 *   comm pid/tid [cpu] time: period event:
 *   <TAB><address in hex, 16 wide> symbol (inlined)
 *     <source file>:<line>
 *   <TAB><address in hex, 16 wide> symbol+0xoffset (module)
 *     <source file>:<line>
 *   # waker: comm pid/tid
 *   #<TAB><a frame of its, as above>
 *   <blank line>
 *
 * Lines that begin with '#' are comments to every reader. Of them, fold(1) reads those of wakers: who ended
 * the wait, who had woken that one, and so on. An interrupt is [interrupt], or its kind, as [timer]. Text
 * from the observed processes is escaped so that it stays within its field:
 *
 *   comm     no '#' first, no ';'; '_' for a leading or trailing space and for a
 *            space before a space or a digit, so that no reader takes part of it
 *            for the PID. Two spaces follow a comm of one byte, because readers
 *            want two bytes before the PID.
 *   symbol   text on one line. "::" precedes a symbol that begins with '(', because
 *            readers take such a frame for a process name and drop it. A place
 *            without a name is [FILE+0xSTART]+0xoffset, by where its function
 *            begins, or [FILE+0xADDRESS]; in FILE, what readers cut or split
 *            names at is escaped as well.
 *   module   a word without white space; so is a source file
 *
 * The symbol of a script frame is "py::function:file" and its module "[python]", for other runtimes
 * likewise, as each names its functions for perf; its address is 0. Parentheses in it become braces, because
 * readers cut a symbol at "(".
 *
 * The text for viewers, which are strict, has no comments and no source lines, times in microseconds, and at
 * least one frame a record. Most viewers ignore the period: they count records, and some weigh them by the
 * time between them. So a wait is several records, "samples", in proportion to its length, which share its
 * period. Times are made up: a thread's waits follow one another, for a capture knows sums of waits but not
 * when each was.
 *
 * Symbols and paths are cut at BUFTEXT_MAX bytes (base/text.c).
 *
 * Only the buffer allocates memory: check its `failed` at the end.
 */

/* Totals for the head. */
struct perf_text_totals {
	uint64_t records, waits, total_ns, lost;
	uint64_t samples; /* of threads that ran, in none of the above but `records` */
};

/* Does C count lost waits, stacks or events? True for "lost.*" that is not 0, except those in nanoseconds. */
bool perf_text_is_loss(const struct cap_counter *c);

/* The sum of these counters. */
uint64_t perf_text_lost(const struct cap_reader *c);

/* F as text names it, without the offset: on one line, never empty. */
void perf_text_frame_name(struct buf *b, const struct frame *f);

/* The members of F, into an object that J has begun. */
void perf_text_json_frame(struct json *j, const struct frame *f);

/*
 * The name of what replaces the frames of a failed stack and is the outermost frame of a stack that
 * was cut short. False, and nothing, for a stack that reached an end, or one that was not to be
 * recorded.
 */
bool perf_text_lack_name(struct buf *b, const struct cap_stack *s);

struct wait_printer_record {
	uint64_t last_ns;
	const struct cap_sample *sample;
	struct stackids_span kernel, user; /* of `stacks` */
	const char *kind; /* what the thread waits for (symbols/kinds.h); NULL = not known */
	bool once; /* set by kinds_find(): it is the only wait of its thread */
	bool loop; /* set by kinds_find(): the thread waits in the loop that all of its work is called from */
};

/* A waker of the capture. */
struct wait_printer_waker {
	struct stackids_span kernel, user;
	const char *kind; /* of an interrupt: what it was (symbols/kinds.h); NULL = not known */
};

/* What is printed: a record, or one wait of it. */
struct wait_printer_turn {
	uint64_t time_ns;
	uint32_t record; /* index */
	uint32_t wait; /* index in the capture's; CAPTURE_NONE = the record itself */
};

enum wait_format {
	WAIT_TEXT,
	WAIT_JSON,
	WAIT_PERF, /* text for viewers */
	WAIT_TABLES, /* JSON with each file, frame, stack and thread once (symbols/tables.h) */
};

/* The caller owns everything in it. */
struct wait_printer {
	const struct cap_reader *c;
	struct resolve *r; /* after resolve_run() */
	struct stackids *stacks;
	struct wait_printer_record *records; /* in the order of printing; WAIT_PERF sorts them */
	size_t n_records;
	struct wait_printer_turn
		*turns; /* print these, in this order; NULL = all records. Not for WAIT_PERF */
	size_t n_turns;
	struct wait_printer_waker *wakers; /* all of the capture */
	struct perf_text_totals totals;
	enum wait_format format;
	bool lines; /* of text: source lines */
	bool no_head;
	bool scheduler; /* print frames of the scheduler as text too; JSON always has them */
};

/* The record of T, with the numbers of the one wait if T is one. */
struct cap_sample wait_printer_turn_sample(const struct wait_printer *w, const struct wait_printer_turn *t);

/* The name of the thread of S; *NS_TID is its ID in its own PID namespace, 0 = unknown. */
const char *wait_printer_comm(const struct cap_reader *c, const struct cap_sample *s, uint32_t *ns_tid);

/*
 * Print the head, the files that were not used, and the records. 0 or -ENOMEM; out_flush() reports
 * failed writes.
 */
int wait_printer_print(const struct wait_printer *w, struct out *out, struct err *e);

/*
 * name_coverage - where names come from, counted by frames, distinct addresses and files, with the
 * time it took.
 */

/* Zero it. */
struct name_coverage {
	uint64_t frames[FRAME_SOURCES], addresses[FRAME_SOURCES], files[FRAME_SOURCES];
	uint64_t with_line, with_inlined, inlined; /* frames, frames, and calls inlined into them */
	struct idmap seen; /* (source, module) */
};

/* Count F, which occurs in TIMES frames. 0 or -ENOMEM. */
int name_coverage_add(struct name_coverage *l, const struct frame *f, uint64_t times);
void name_coverage_free(struct name_coverage *l);

/* As lines for users, each with PREFIX; S may be NULL. */
void name_coverage_text(
	struct buf *b, const struct name_coverage *l, const struct modules_stats *s, const char *prefix);

#endif
