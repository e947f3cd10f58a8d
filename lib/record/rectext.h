/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rectext - a recording in words: its progress and its summary.
 */
#ifndef STACKTOOLS_RECTEXT_H
#define STACKTOOLS_RECTEXT_H

#include "base/bytes.h"
#include "record/recstats.h"
#include "system/command.h"

/* "5.0 s  1234 waits  56 stacks  7 processes  0 lost", without a newline. */
void rectext_progress(struct buf *b, const struct recorder_stats *st);

struct rectext_told {
	const char *name; /* of the program */
	const char *path; /* of the capture */
	const struct command *command; /* NULL = none */
	bool verbose; /* zeroes too */
};

/* The first line of a summary. ABOUT: the waits are estimates. */
struct rectext_head {
	uint64_t ns; /* of the recording */
	uint64_t waits, waits_ns;
	uint64_t stacks, processes, bytes;
	bool about;
};

void rectext_head(struct buf *b, const struct rectext_head *h, const struct rectext_told *told);

/* What was given up, kept and confined; NULL or "" = nothing is said. */
void rectext_privileges(struct buf *b, const char *privileges);

/* What became of the command. */
void rectext_command(struct buf *b, const struct command *c);

/* "12.345": nanoseconds as seconds, rounded to thousandths. */
void rectext_seconds(struct buf *b, uint64_t ns);

/* The summary, several lines: what was recorded, what was left out, how the stacks ended, what was lost. */
void rectext_summary(struct buf *b, const struct recorder_stats *st, const struct rectext_told *told);

#endif
