/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfscript - the grammar of `perf script` text, a line at a time.
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
#ifndef STACKTOOLS_PERFSCRIPT_H
#define STACKTOOLS_PERFSCRIPT_H

#include "base/base.h"

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

/* White space as the C locale has it, newline included. */
static inline bool perfscript_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

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

#endif
