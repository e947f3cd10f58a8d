/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * script - the grammar of `perf script` text, a line at a time.
 *
 *	# comment
 *	# wait: count=12 total_ns=3456 ...             belongs to the record that follows
 *	comm pid/tid [cpu] time: period event:         header, begins in the first column
 *	<blanks>address symbol+0xoffset (dso)          frame, leaf first
 *	  file:line                                     where it is in the source; says nothing of its own
 *	<blank line>                                   ends the record
 *
 * perf has no specification of this text, and fields come and go with its
 * version and with -F. What counts as a header and as a frame is therefore
 * what stackcollapse-perf.pl takes for one, to the byte, oddities included: a
 * comm has at least two bytes, a dso begins at the last " (" that a ")"
 * follows. Lines are slices without their newline and may hold any other
 * byte; nothing is copied, so what is returned points into the line.
 */
#ifndef STACKTOOLS_FOLD_SCRIPT_H
#define STACKTOOLS_FOLD_SCRIPT_H

#include "base/base.h"
#include "base/err.h"

struct perfscript_str {
	const char *p;
	size_t len;
};

struct perfscript_header {
	struct perfscript_str comm; /* as printed, spaces included */
	struct perfscript_str pid; /* digits; empty where the text has the thread's id only */
	struct perfscript_str tid; /* digits, never empty */
	struct perfscript_str event; /* empty: no "event:" ends the line (trace fields, -F without event) */
	uint64_t period; /* 1 where there is none, or "0" */
	bool overflow; /* the period does not fit 64 bits; it is 1 then */
};

struct perfscript_frame {
	struct perfscript_str pc; /* hexadecimal */
	struct perfscript_str sym; /* with +0xoffset where the text has it */
	struct perfscript_str dso; /* without its parentheses */
};

struct perfscript_wait {
	bool has_count;
	uint64_t count; /* waits that the record sums up */
};

/* True when the line begins a record. A comment never does. */
bool perfscript_header(const char *line, size_t len, struct perfscript_header *ret);

/* True when a line that is no header is a frame. */
bool perfscript_frame(const char *line, size_t len, struct perfscript_frame *ret);

/*
 * True when a line that is neither header nor frame is the place of the frame
 * above it (-F +srcline): two blanks, a file without any, ":line".
 */
bool perfscript_srcline(const char *line, size_t len);

/* True for a "# wait:" comment; words it does not know are skipped. False too when count= is no number. */
bool perfscript_wait(const char *line, size_t len, struct perfscript_wait *ret);

/* The symbol's length without a "+0x..." at its end. */
size_t perfscript_plain_len(struct perfscript_str sym);

/*
 * A header that perf prints for what is no sample (PERF_RECORD_MMAP2 and the
 * like, --show-task-events): it has neither frames nor a blank line.
 */
bool perfscript_is_side_band(const char *line, size_t len);

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
