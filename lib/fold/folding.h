/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * folding - paragraphs of perf script text into a table of distinct stacks.
 *
 * The meaning is stackcollapse-perf.pl's where the text is well-formed. Where
 * it is not, the damage is counted and nothing is guessed:
 *
 *   a line that is neither header nor frame, source line nor comment is skipped;
 *   a frame outside a record is skipped;
 *   a record that no blank line ends (another one begins, or the input ends)
 *   is left out whole, as frames may be missing; so is one of more than
 *   PARAGRAPH_MAX bytes, and one whose period or count is no 64-bit number.
 *
 * A stack that was seen before is known by its bytes and not taken apart again.
 * What is kept for that is bounded.
 */
#ifndef STACKTOOLS_FOLDING_H
#define STACKTOOLS_FOLDING_H

#include "fold/foldframe.h"
#include "fold/foldtab.h"
#include "fold/paragraph.h"

struct folding_opts {
	bool pid, tid; /* ids behind the process name; tid implies pid */
	bool threads; /* a first frame that names the thread */
	bool reverse; /* innermost frame first, the process last */
	bool delimit; /* "-" between user and kernel frames, "--" before a waker */
	bool by_count; /* weigh a record by its count= (1 without), not by its period */
	const char *event; /* the one to fold; NULL or "": the first one seen */
	struct foldframe_opts frames;
};

struct folding_report {
	uint64_t records; /* folded */
	uint64_t filtered; /* of other events */
	char *event; /* the one folded, NULL = none seen */
	char *other; /* the first one left out, NULL = none */
	uint64_t malformed;
	const char *bad_path; /* where the first one is */
	uint64_t bad_line;
	const char *bad_why;
};

struct folding;

/* OPTS and what it points to must outlive *RET. Release with folding_free(). */
int folding_new(const struct folding_opts *opts, struct folding **ret, struct err *e);
void folding_free(struct folding *f); /* NULL is fine */

/* Fold the paragraph that IN returned last; IN tells where damage is. 0 or -errno. */
int folding_add(struct folding *f, const struct paragraphs *in, const struct paragraph *para, struct err *e);

/* All of IN. */
int folding_run(struct folding *f, struct paragraphs *in, struct err *e);

const struct foldtab *folding_table(const struct folding *f);
const struct folding_report *folding_report(const struct folding *f);

#endif
