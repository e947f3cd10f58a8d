/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procwalk - user stacks for a recording by /proc, with --ptrace: whose walker
 * is asked, and what a stop does to the account of the thread.
 */
#ifndef STACKTOOLS_PROCWALK_H
#define STACKTOOLS_PROCWALK_H

#include "procfs/procset.h"
#include "procfs/proctold.h"
#include "procfs/ptreach.h"

/*
 * The user stack of T, reached by R, which waits where the look S saw it: the
 * walker's, until it walks again. False where there is none to be had, which
 * is counted, or where it waits elsewhere by now: then what S saw is what is
 * known.
 */
bool procwalk_take(const struct ptreach *r, struct procset_thread *t, const struct proclook_seen *s,
	struct cap_stack *ret, struct proctold *told);

/*
 * T was stopped by the last procwalk_take() and waits again where it did, by
 * what is seen now: in the same call, which the kernel may have started again.
 * Asked once after each look.
 */
bool procwalk_waits_on(struct procset_thread *t, const struct proclook_seen *s);

void procwalk_end(struct procset_process *p); /* P is gone, or another image: its walker goes */

#endif
