/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perftext - waits and frames as text: the grammar of perf script(1), and
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
#ifndef STACKTOOLS_PERFTEXT_H
#define STACKTOOLS_PERFTEXT_H

#include "base/bytes.h"
#include "capture/reader.h"
#include "symbols/frame.h"

struct perftext_wait {
	const struct cap_sample *sample;
	const struct cap_proc *proc;
	const struct cap_stack *kernel, *user;
	const char *comm; /* the thread's */
	uint32_t ns_tid; /* the thread's, in its own PID namespace; 0 = unknown */
};

/* What the stream contains, for its head. */
struct perftext_totals {
	uint64_t records, waits, total_ns, lost;
};

/* The '#' lines at the top of the text; FORMAT line first. */
void perftext_head(struct buf *b, const struct capread *c, const struct perftext_totals *t);

/* "# not-used: file=PATH reason=WHY" */
void perftext_not_used(struct buf *b, const char *path, const char *why);

/* The comment and the first line of a record. End it with a newline of your own. */
void perftext_wait(struct buf *b, const struct perftext_wait *w);

/*
 * A line for each call that was inlined, innermost first, and one for the
 * function itself. With LINES each has the source line below it, where it is known.
 */
void perftext_frame(struct buf *b, const struct frame *f, bool lines);

/*
 * The line that stands for what a stack lacks: instead of its frames where it
 * failed, as its outermost frame where it was cut short. Nothing for a whole
 * stack, one that nothing proves whole, or one that was not to be recorded.
 */
void perftext_lack(struct buf *b, const struct cap_stack *s);

/* The same in JSON; each object is one line. */
void perftext_json_head(struct buf *b, const struct capread *c, const struct perftext_totals *t);
void perftext_json_not_used(struct buf *b, const char *path, const char *why);

/*
 * Everything up to the frames, with the numbers of the exact ones where there
 * are any (struct cap_stack); then the kernel's and the user's, "," between
 * them.
 */
void perftext_json_wait(struct buf *b, const struct perftext_wait *w);
void perftext_json_frame(struct buf *b, const struct frame *f);
extern const char perftext_json_kernel[]; /* before the kernel frames */
extern const char perftext_json_user[]; /* between both */
extern const char perftext_json_end[]; /* behind the user frames */

/*
 * The sum of the recording's counters of lost waits, stacks and events: all
 * "lost.*" but those in nanoseconds.
 */
uint64_t perftext_lost(const struct capread *c);

#endif
