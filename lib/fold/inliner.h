/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inliner - the inline chain of an address, from addr2line(1).
 *
 * For perf script text whose frames are not expanded yet. If the address is unknown (perf prints
 * run-time addresses of relocated objects), the inliner tries the symbol's address from nm(1) plus
 * the offset. Programs are found through PATH and started without a shell; their error messages go
 * to stderr. Each distinct frame is looked up once.
 */
#ifndef STACKTOOLS_FOLD_INLINER_H
#define STACKTOOLS_FOLD_INLINER_H

#include "base/bytes.h"
#include "base/err.h"

struct inliner;

/* CONTEXT adds ":file:line" to each function. Release with inliner_free(). */
int inliner_new(bool context, struct inliner **ret, struct err *e);
void inliner_free(struct inliner *in); /* NULL is fine */

/* A frame; its strings do not end in NUL. */
struct inliner_query {
	const char *pc, *dso, *sym; /* hexadecimal; a path; "function+0xoffset" */
	size_t pc_len, dso_len, sym_len;
	size_t func_len; /* of sym without its offset; sym_len if it has none */
};

/*
 * Append the frames at Q, outermost first and joined by ';', to OUT. 1, or 0 if nothing is known
 * (OUT is unchanged), or -errno if addr2line or nm cannot be started.
 */
int inliner_put(struct inliner *in, const struct inliner_query *q, struct buf *out, struct err *e);

#endif
