/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inliner - the inline chain of an address as addr2line(1) tells it. Floor 3.
 *
 * For perf script text whose frames are not expanded yet. Where the address
 * says nothing (perf prints run-time addresses of relocated objects), the
 * symbol's address from nm(1) plus the offset is asked for instead. Programs
 * are found through PATH and started without a shell; their complaints go to
 * stderr.
 */
#ifndef STACKTOOLS_INLINER_H
#define STACKTOOLS_INLINER_H

#include "buf.h"
#include "err.h"
#include "perfscript.h"

struct inliner;

/* CONTEXT adds ":file:line" to each function. Release with inliner_free(). */
int inliner_new(bool context, struct inliner **ret, struct err *e);
void inliner_free(struct inliner *in); /* NULL is fine */

/*
 * Append the frames at F, outermost first and joined by ';', to OUT. 1, or 0
 * when nothing is known (OUT is as it was), or -errno when addr2line or nm
 * cannot be started.
 */
int inliner_put(struct inliner *in, const struct perfscript_frame *f, struct buf *out, struct err *e);

#endif
