/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * print - a ranking as a table for people, as lines with tabs, and as JSON.
 *
 * Names are the observed programs': control characters and what is not UTF-8 are escaped. In the
 * table, names and stacks are cut to the width; a stack keeps its innermost functions and the one
 * nearest to main.
 */
#ifndef STACKTOOLS_REPORT_PRINT_H
#define STACKTOOLS_REPORT_PRINT_H

#include "base/out.h"
#include "report/ranking.h"
#include "report/intervals.h"

enum report_format { REPORT_TABLE, REPORT_TSV, REPORT_JSON };

struct report_print {
	const struct waits *waits;
	const struct ranking_opts *opts;
	enum report_format format;
	size_t top; /* groups to print; 0 = all */
	size_t width; /* columns of the table */
	bool last; /* also what ended since the flush before */
	bool one_line; /* JSON */
};

/* 0 or -ENOMEM; out_flush() reports failed writes. */
int report_ranking(struct out *o, const struct report_print *p, const struct ranking *r, struct err *e);
/* The table alone. */
void report_table(struct buf *b, const struct report_print *p, const struct ranking *r);
int report_function(struct out *o, const struct report_print *p, const struct ranking_function *r,
	const char *name, struct err *e);
int report_intervals(struct out *o, const struct report_print *p, const struct ranking *r,
	const struct intervals *t, struct err *e);

#endif
