/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * critical_print - a critical path as a table for people, as lines with tabs, and as JSON.
 */
#ifndef STACKTOOLS_REPORT_CRITICAL_PRINT_H
#define STACKTOOLS_REPORT_CRITICAL_PRINT_H

#include "report/critical_path.h"
#include "report/print.h"

/* A window of time; ns from the beginning of the recording on. */
struct critical_window {
	uint64_t from_ns, to_ns;
};

struct critical_print {
	const struct waits *waits;
	enum report_format format;
	size_t top; /* parts to print; 0 = all */
	size_t width; /* columns of the table */
	uint32_t thread; /* index */
	struct critical_window window;
	const struct critical_path *path;
	bool segments; /* print them too; in TSV instead of the sums */
	/* with MARK, the path is that of all requests in the window: */
	const char *mark; /* NULL = no requests */
	uint64_t n_requests;
	struct critical_window slowest;
	const struct critical_path *slowest_path; /* whose segments are those to print */
};

/* 0 or -ENOMEM; out_flush() reports failed writes. */
int critical_print(struct out *o, const struct critical_print *p, struct err *e);

#endif
