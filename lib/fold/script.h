/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * script - the grammar of `perf script` text, a line at a time.
 *
 *	# comment
 *	# wait: count=12 total_ns=3456 ...             belongs to the record that follows; also "# sample:"
 *	comm pid/tid [cpu] time: period event:         header, begins in the first column
 *	<blanks>address symbol+0xoffset (dso)          frame, leaf first
 *	  file:line                                     source line of the frame; ignored
 *	<blank line>                                   ends the record
 *
 * perf has no specification of this text, and its fields depend on the perf version and on -F.
 * Therefore headers and frames are exactly what stackcollapse-perf.pl takes for them, oddities
 * included: a comm has at least two bytes, a dso begins at the last " (" that a ")" follows. Lines
 * are slices without their newline and may hold any other byte; nothing is copied: results point
 * into the line.
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
	struct perfscript_str pid; /* digits; empty if the text has only the thread's id */
	struct perfscript_str tid; /* digits, never empty */
	struct perfscript_str event; /* empty: no "event:" ends the line (trace fields, -F without event) */
	uint64_t period; /* 1 if it is missing or "0" */
	bool overflow; /* the period does not fit 64 bits and was set to 1 */
	const char *time_end; /* for perfscript_time(); NULL: no time is known */
};

struct perfscript_frame {
	struct perfscript_str pc; /* hexadecimal */
	struct perfscript_str sym; /* with +0xoffset if the text has it */
	struct perfscript_str dso; /* without its parentheses */
};

/* What symbolize's comment says of a record. A number is 0 if it is missing. */
struct perfscript_wait {
	bool has_count, has_total, has_max;
	bool has_runnable; /* missing: it is not known which part of the time it is */
	uint64_t count; /* waits in the record */
	uint64_t total_ns, max_ns; /* of all together; of the longest */
	uint64_t runnable_ns; /* of total_ns: on a run queue, after the wake-up */
	struct perfscript_str state, kind, waker; /* words; empty if they are missing */
	bool open, initial, preempted;
};

/* True when the line begins a record. A comment never does. */
bool perfscript_header(const char *line, size_t len, struct perfscript_header *ret);

/* The time of a header in ns, from its seconds with up to nine decimals; false if it has none, or it is too
 * great. */
bool perfscript_time(const struct perfscript_header *h, uint64_t *ns);

/* True when a line that is not a header is a frame. */
bool perfscript_frame(const char *line, size_t len, struct perfscript_frame *ret);

/*
 * True when a line that is neither header nor frame is the source line of the frame above it (-F
 * +srcline): two blanks, a file without blanks, ":line".
 */
bool perfscript_srcline(const char *line, size_t len);

/*
 * The length of the beginning of a comment that describes the record behind it, "# wait:" or
 * "# sample:"; 0 for another line.
 */
size_t perfscript_details(const char *line, size_t len);

/*
 * True for a comment "# waker: NAME" in a record, which begins the stack of the thread that ended the wait,
 * or of the one that had woken the waker before it; the frames that follow, leaf first, are comments too:
 * "#<TAB>...".
 */
bool perfscript_waker(const char *line, size_t len, struct perfscript_str *name);

/* True for such a comment; unknown words are skipped. False also when a number is none, or too large. */
bool perfscript_wait(const char *line, size_t len, struct perfscript_wait *ret);

/* The part of S before the first C, which S then begins behind; all of it if there is none. */
struct perfscript_str perfscript_split(struct perfscript_str *s, char c);

/* The length of the symbol without a final "+0x...". */
size_t perfscript_plain_len(struct perfscript_str sym);

/*
 * True for a header that perf prints for something that is not a sample (PERF_RECORD_MMAP2 and
 * similar, --show-task-events): it has neither frames nor a blank line.
 */
bool perfscript_is_side_band(const char *line, size_t len);

/*
 * paragraph - files read as one stream of paragraphs: runs of lines up to a blank line.
 *
 * It reads into its own buffer, so pipes cost the same as files and a file truncated meanwhile is
 * no fault; gigabytes a second. The files are joined line by line: a paragraph may begin in one and
 * end in the next, and a last line without a newline is a line. Memory: 256 KiB, or the longest
 * paragraph, at most PARAGRAPH_MAX.
 */

/* A longer paragraph is returned in pieces. */
#define PARAGRAPH_MAX ((size_t)16 << 20)

enum paragraph_end {
	PARAGRAPH_BLANK, /* a blank line followed */
	PARAGRAPH_EOF, /* the input ended */
	PARAGRAPH_CUT, /* longer than PARAGRAPH_MAX: the next one continues it */
	PARAGRAPH_CUT_LINE, /* as CUT, but inside a line longer than that: the rest of the line is skipped */
};

struct paragraph {
	const char *text; /* whole lines, each with its newline; valid until the next call */
	size_t len;
	enum paragraph_end end;
};

struct paragraphs;

/*
 * PATHS (N of them; "-" is stdin, and so are none) must outlive *RET. A file is opened when its
 * turn comes. Release with paragraphs_close().
 */
int paragraphs_open(const char *const *paths, size_t n, struct paragraphs **ret, struct err *e);
void paragraphs_close(struct paragraphs *p); /* NULL is fine */

/* Open files, but not stdin, with OPEN, which returns a descriptor for us to close, or -errno. */
void paragraphs_open_with(
	struct paragraphs *p, int (*open)(void *ctx, const char *path, struct err *e), void *ctx);

/*
 * Before each read of a descriptor call WAIT, which returns 0 when there is something to read, or -errno,
 * which paragraphs_next() then returns.
 */
void paragraphs_wait_with(struct paragraphs *p, int (*wait)(void *ctx, int fd, struct err *e), void *ctx);

/*
 * 1 with the next paragraph, 0 at the end, or -errno if a file cannot be opened or read. -EINVAL
 * with a hint for a perf.data file or a capture.
 */
int paragraphs_next(struct paragraphs *p, struct paragraph *ret, struct err *e);

/* The file and line of AT, which must be in the paragraph returned last. */
void paragraphs_where(const struct paragraphs *p, const char *at, const char **path, uint64_t *line);

#endif
