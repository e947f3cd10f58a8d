/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tables - the waits of a capture as JSON for programs that read millions of them.
 *
 * Each object is a line, as in the JSON of symbols/print.h, but a file, mapping, process, thread, frame,
 * stack and waker is printed once, with a number, before the first object that refers to it. So a wait is
 * short however deep its stack is. docs/symbolize.1 has the members.
 */
#ifndef STACKTOOLS_SYMBOLS_TABLES_H
#define STACKTOOLS_SYMBOLS_TABLES_H

#include "symbols/print.h"

/* Print the records of W, after the head. 0 or -ENOMEM; out_flush() reports failed writes. */
int tables_print(const struct wait_printer *w, struct out *out, struct err *e);

#endif
