/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * live - a ranking of what is still being recorded, shown again after each flush.
 *
 * On a terminal a table replaces the one before and is as high and wide as the terminal, also when that
 * changes. Elsewhere each is printed after the one before: tables and lines with tabs with a blank line
 * between them, JSON as one line each.
 *
 * Ctrl-C ends the reading, but lets those who write the input end it first, if they do so within a second: it
 * has gone to them as well.
 */
#ifndef STACKTOOLS_REPORT_LIVE_H
#define STACKTOOLS_REPORT_LIVE_H

#include "report/print.h"

/*
 * Rank and print W, which IN is read into, with *P, where top and width may be 0: as the terminal is. The
 * last ranking, of everything, is that of the caller to print. 0, 1 if Ctrl-C came before the end of IN, or
 * -errno.
 */
int live_run(struct waits *w, struct paragraphs *in, const struct waits_opts *opts,
	const struct report_print *p, struct err *e);

#endif
