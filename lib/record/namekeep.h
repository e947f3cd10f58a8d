/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * namekeep - names for the places of a recording, written beside it, so that
 * it can be read where the files are not.
 *
 * Files are opened as the processes that mapped them reach them, and are used
 * when they are proven to be those that were mapped. Reading their symbols is
 * left to processes that can do nothing else (symchild.h); no server is asked. A thread
 * waits for them, so that most of it is done while the recording goes on.
 */
#ifndef STACKTOOLS_NAMEKEEP_H
#define STACKTOOLS_NAMEKEEP_H

#include "capture/writer.h"
#include "record/filetab.h"
#include "record/namewant.h"

struct namekeep;

/* For the places of W, whose files are in FILES; names go to OUT. All stay the caller's. */
int namekeep_new(struct namewant *w, struct filetab *files, struct capwrite *out, struct namekeep **ret,
	struct err *e);
void namekeep_free(struct namekeep *k); /* NULL is fine; ends what is under way */

/*
 * While the recording goes on, from time to time: write the names that are there, and begin with the
 * places that came since; at low priority and for a twentieth of the time.
 */
void namekeep_service(struct namekeep *k);

/*
 * The recording is about to stop: begin with the rest now. Of one that was shorter than a second by symbol
 * tables alone, without lines and inlined calls: to unpack debug information would take longer than all else.
 */
void namekeep_hurry(struct namekeep *k);

/*
 * Write all names that are there within NS. Whatever does not get its name is counted: nothing
 * of it is an error.
 */
void namekeep_finish(struct namekeep *k, uint64_t ns);

void namekeep_stats(const struct namekeep *k, struct namewant_stats *ret);

#endif
