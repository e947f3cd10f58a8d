/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source - files of text, and captures, of which symbolize makes the text.
 *
 * symbolize is the one beside the running program, else the one in PATH. It is started when the turn
 * of its capture comes, without a shell, and writes into a pipe.
 */
#ifndef STACKTOOLS_REPORT_SOURCE_H
#define STACKTOOLS_REPORT_SOURCE_H

#include "base/err.h"

#include <sys/types.h>

#define SOURCE_OPTIONS_MAX 16

/* Zero it, with PID -1 for no child. */
struct source {
	pid_t pid; /* of the symbolize that is running */
	const char *const *options; /* for symbolize before the capture, NULL-terminated; NULL = none */
	const char *kinds; /* a file of rules for its --kinds; NULL = none */
	const char *path; /* the capture that it reads */
	bool incomplete; /* a symbolize had status 1: it has printed why */
};

/*
 * For paragraphs_open_with(); CTX is a struct source. The text of PATH, "-" for standard input: a
 * descriptor, or -errno.
 */
int source_open(void *ctx, const char *path, struct err *e);

/*
 * Can rules for kinds be of these files (N; none is stdin)? Text has its kinds already: -EINVAL. Of a file
 * that cannot be opened nothing is known: source_open() says why.
 */
int source_check_kinds(const char *const *paths, size_t n, struct err *e);

/* Wait for the last symbolize, after the end of its text. -EIO if it failed. */
int source_end(struct source *s, struct err *e);

/* Wait for it after an error elsewhere: its pipe must be closed. */
void source_close(struct source *s);

#endif
