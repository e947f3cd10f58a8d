/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * paragraph - files read as one stream of paragraphs: runs of lines that a
 * blank line ends.
 *
 * Reads through a buffer of its own, so pipes and files cost the same and a
 * file cut under the reader is no fault; gigabytes a second. The files follow
 * each other line by line: a paragraph may begin in one and end in the next,
 * and a last line without its newline is a line. Memory: 256 KiB, or the
 * longest paragraph, PARAGRAPH_MAX at most.
 */
#ifndef STACKTOOLS_PARAGRAPH_H
#define STACKTOOLS_PARAGRAPH_H

#include "base/err.h"

/* A longer paragraph comes in pieces. */
#define PARAGRAPH_MAX ((size_t)16 << 20)

enum paragraph_end {
	PARAGRAPH_BLANK, /* a blank line followed */
	PARAGRAPH_EOF, /* the input ended */
	PARAGRAPH_CUT, /* it goes on in the next one: longer than PARAGRAPH_MAX */
	PARAGRAPH_CUT_LINE, /* as CUT, and the last line's rest is left out: one line longer than that */
};

struct paragraph {
	const char *text; /* whole lines, each with its newline; stays until the next call */
	size_t len;
	enum paragraph_end end;
};

struct paragraphs;

/*
 * PATHS (N of them, "-" is stdin, none: stdin) must outlive *RET. Files are
 * opened when their turn comes. Release with paragraphs_close().
 */
int paragraphs_open(const char *const *paths, size_t n, struct paragraphs **ret, struct err *e);
void paragraphs_close(struct paragraphs *p); /* NULL is fine */

/*
 * 1 with the next paragraph, 0 at the end, or -errno when a file cannot be
 * opened or read. -EINVAL with a hint for a perf.data file.
 */
int paragraphs_next(struct paragraphs *p, struct paragraph *ret, struct err *e);

/* Which line of which file AT is in; AT lies in the paragraph returned last. */
void paragraphs_where(const struct paragraphs *p, const char *at, const char **path, uint64_t *line);

#endif
