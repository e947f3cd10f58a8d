/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frames - the name of a perf script frame in a folded line.
 *
 * The names are those of stackcollapse-perf.pl, byte for byte: offset and arguments are cut, "->"
 * separates inlined functions, an [unknown] symbol takes the name of its file, ';' becomes ':'.
 * With `balanced`, fold/balanced.h decides what is cut and separated, and quotes stay.
 */
#ifndef STACKTOOLS_FOLD_FRAMES_H
#define STACKTOOLS_FOLD_FRAMES_H

#include "base/bytes.h"
#include "fold/inliner.h"
#include "fold/script.h"

struct foldframe_opts {
	bool kernel; /* "_[k]" after kernel functions */
	bool jit; /* "_[j]" after functions of a /tmp/perf-PID.map */
	bool inlined; /* "_[i]" after functions of lines of their own, "(inlined)"; those of "a->b" always
			 have it */
	bool addrs; /* the address if there is no symbol */
	bool balanced; /* cut the final arguments only, not what is behind the first "(" */
	struct inliner *inliner; /* NULL = none */
};

enum foldframe_side { FOLDFRAME_USER, FOLDFRAME_KERNEL, FOLDFRAME_WAKER };

/*
 * Append the functions of frame F, outermost first and joined by ';', to OUT. JAVA: it is a Java
 * process, so a class name loses its "L". Returns how many there are (0 is possible), or -errno of
 * the inliner; -EFBIG, with OUT unchanged, for a frame of more than 16 MiB:
 * "[unknown]->[unknown]->..." repeats the name of its file.
 */
int foldframe_put(const struct perfscript_frame *f, const struct foldframe_opts *o, bool java,
	struct buf *out, struct err *e);

/*
 * The side of the system call that a frame is on, by its address and file. WAKER: not a frame, but
 * the mark "--" between the thread's own stack and its waker's.
 */
enum foldframe_side foldframe_side(const struct perfscript_frame *f);

#endif
