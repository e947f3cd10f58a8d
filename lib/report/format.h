/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * format - names, numbers and stacks of waits, as all reports print them.
 *
 * Names are the observed programs': control characters and what is not UTF-8 are escaped.
 */
#ifndef STACKTOOLS_REPORT_FORMAT_H
#define STACKTOOLS_REPORT_FORMAT_H

#include "base/json.h"
#include "report/ranking.h"

#define FORMAT_NUMBER_MAX 48
#define FORMAT_INDENT 6 /* of a stack below its row */

/* The names of strings; with what a terminal could obey as \xNN. */
void format_clean(struct buf *b, const char *p, size_t len);
void format_string(struct buf *b, const struct waits *w, uint32_t id);
size_t format_columns(const uint8_t *p, size_t len); /* of clean text */
void format_cut(
	struct buf *b, const uint8_t *p, size_t len, size_t width); /* the middle of long clean text */

/* Numbers, into TEXT, which is returned. */
const char *format_digits(char text[FORMAT_NUMBER_MAX], wait_sum v);
const char *format_time(char text[FORMAT_NUMBER_MAX], wait_sum ns); /* "14.58 s", "583.2 ms" */
const char *format_amount(char text[FORMAT_NUMBER_MAX], const struct waits *w, wait_sum v);
const char *format_percent(char text[FORMAT_NUMBER_MAX], wait_sum part, wait_sum all);

const char *format_plural(wait_sum n, const char *one, const char *many);
void format_counted(struct buf *b, wait_sum n, const char *one, const char *many); /* "2 waits" */
void format_sum(struct buf *b, const struct waits *w, wait_sum v); /* "54.38 s", "120 of event cycles" */

/* What is ranked: "stack", "place" or "places". */
const char *format_title(enum ranking_by by);
const char *format_noun(enum ranking_by by, wait_sum n);

/* "the 10 greatest changes of ": ONE is " change", MANY " changes", or both "". */
void format_greatest(struct buf *b, size_t n, const char *one, const char *many);

/* Begin a table with the N first of ALL rows, "the 10 greatest of 12 places". False, and NOTHING, without. */
bool format_heading(struct buf *b, enum ranking_by by, size_t n, size_t all, const char *one,
	const char *many, const char *nothing);

/* A path in short, in at most WIDTH columns if its innermost function fits: "main > ... > read  in read". */
void format_path(struct buf *b, const struct waits *w, const struct wait_path *path, size_t width);

/* The clean name of a group that is not of stacks. */
void format_group(struct buf *b, const struct waits *w, enum ranking_by by, const struct ranking_group *g);

/* Append TEXT right-aligned in WIDTH columns, of which at least the first is blank. */
void format_cell(struct buf *b, const char *text, size_t width);

/* Lines about what the recording of W lacks, with titles INDENT columns from the left; none if nothing. */
void format_lost(struct buf *b, const struct waits *w, int indent);

/* Is it damaged, or incomplete? */
const char *format_damaged(const struct waits *w);

/* Columns of the table on stdout: WANTED, or if that is 0 the terminal's, at least 40, or 80. */
size_t format_width(size_t wanted);

/* Lines with tabs: a number and a tab; the fields that name a group, and a newline; their titles. */
void format_tsv_number(struct buf *b, wait_sum v, bool known);
void format_tsv_group(
	struct buf *b, const struct waits *w, enum ranking_by by, const struct ranking_group *g);
const char *format_tsv_title(enum ranking_by by);

/* Give what is in B to O, so that it does not grow with the table. */
void format_pass(struct out *o, struct buf *b);

struct format_json {
	struct json j;
	const struct waits *w;
	struct buf text;
	bool last; /* with what ended since the flush before */
	bool one_line;
	bool failed; /* memory ran out */
};

/* json_line(), unless all is to be in one. */
void format_json_line(struct format_json *wr, unsigned int indent);

void format_json_sum(struct format_json *wr, const char *key, wait_sum v);
/* A sum, whose key ends in "_ns" if it is a time. */
void format_json_amount(struct format_json *wr, const char *key, wait_sum v);
/* The string; null for the empty one. A NUL in it becomes U+FFFD. */
void format_json_text(struct format_json *wr, const char *key, uint32_t id);
/* The members that name a group. */
void format_json_group(struct format_json *wr, enum ranking_by by, const struct ranking_group *g);
void format_json_stats(struct format_json *wr, const struct wait_stats *s);
/* The members about the recording and what of it is ranked. */
void format_json_summary(struct format_json *wr, const struct ranking *r);

#endif
