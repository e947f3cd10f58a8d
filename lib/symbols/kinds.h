/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kinds - what a thread waits for, by a table of rules over its stack.
 *
 * The table is lib/symbols/kinds.table, which is part of the program; a file of the user's in the
 * same format comes before it. A line is a rule:
 *
 *	KIND CONDITION...  # what it is for
 *
 *	syscall=NAME|...   the system call that the thread is in
 *	kernel=NAME|...    a function of the kernel stack
 *	user=NAME|...      a function of the user stack, inlined ones and script frames too, as the
 *	                   symbol table or the interpreter names it
 *	state=LETTERS      one of ps(1)'s letters
 *	preempted, throttled, kthread
 *	timed              the system call has a timeout: futex, rt_sigtimedwait, poll or select
 *	no-descriptors     it is poll or select without any
 *	once               it is the only wait of its thread that was seen
 *	loop               see below
 *	interrupt          not of a wait, but of an interrupt that ended one: the KIND is what it is called
 *
 * Each '*' in a NAME stands for anything. All conditions must hold, each repeated one too; the
 * first rule that does decides.
 *
 * A thread that waits for its next piece of work does so in the loop that all of its work is called
 * from. `loop` is true if the function that calls the wait is on every stack of the thread: in the
 * part, counted from the outermost frame, that they have in common. Functions that merely wait, and
 * files that are nothing but libraries for that, are the lines whose KIND is "call" (with user= and
 * module=): the caller is the first frame behind them. Only stacks that reached an end count.
 */
#ifndef STACKTOOLS_SYMBOLS_KINDS_H
#define STACKTOOLS_SYMBOLS_KINDS_H

#include "symbols/print.h"

#define KIND_UNKNOWN "unknown" /* no rule holds */

struct kinds;

/*
 * The rules of FILE (NULL: none of the user's), then those of the program. -EINVAL for a line that is
 * not a rule, with its number. Release with kinds_free().
 */
int kinds_load(const char *file, struct kinds **ret, struct err *e);
void kinds_free(struct kinds *k); /* NULL is fine */

/* The text of the program's own table. */
const char *kinds_text(void);

/*
 * Set the kinds of the records and wakers of P, which have their stacks, after resolve_run(). The names
 * belong to K. 0 or -ENOMEM.
 */
int kinds_find(const struct kinds *k, const struct wait_printer *p, struct err *e);

#endif
