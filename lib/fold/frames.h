/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frames - what a frame of perf script text is called in a folded line.
 *
 * The names are stackcollapse-perf.pl's, byte for byte: offset and arguments
 * are cut, "->" separates inlined functions, an [unknown] symbol takes the
 * name of its file, ';' becomes ':'.
 */
#ifndef STACKTOOLS_FOLD_FRAMES_H
#define STACKTOOLS_FOLD_FRAMES_H

#include "base/bytes.h"
#include "fold/inliner.h"
#include "fold/script.h"

struct foldframe_opts {
	bool kernel; /* "_[k]" behind kernel functions */
	bool jit; /* "_[j]" behind functions of a /tmp/perf-PID.map */
	bool addrs; /* the address of what has no symbol */
	struct inliner *inliner; /* NULL = none */
};

enum foldframe_side { FOLDFRAME_USER, FOLDFRAME_KERNEL, FOLDFRAME_WAKER };

/*
 * Append the functions of frame F, outermost first and joined by ';', to OUT.
 * JAVA: the process is one, so a class name loses its "L". Returns how many
 * there are (0 is possible), or -errno of the inliner; -EFBIG, with OUT as it
 * was, for a frame of more than FOLDFRAME_MAX bytes: "[unknown]->[unknown]->..."
 * repeats the name of its file.
 */
int foldframe_put(const struct perfscript_frame *f, const struct foldframe_opts *o, bool java,
	struct buf *out, struct err *e);

/*
 * On which side of the system call a frame is, by its address and file. WAKER:
 * no frame, but the mark "--" between the thread's own stack and its waker's.
 */
enum foldframe_side foldframe_side(const struct perfscript_frame *f);

#endif
