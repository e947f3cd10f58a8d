/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names - names for the places of a recording, written beside it, so that
 * it can be read where the files are not.
 *
 * Files are opened as the processes that mapped them reach them, and are used
 * when they are proven to be those that were mapped. Reading their symbols is
 * left to processes that can do nothing else (symbols/pool.h); no server is asked. A thread
 * waits for them, so that most of it is done while the recording goes on.
 */
#ifndef STACKTOOLS_RECORD_NAMES_H
#define STACKTOOLS_RECORD_NAMES_H

#include "base/err.h"
#include "capture/types.h"
#include "capture/writer.h"
#include "record/files.h"
#include "record/processes.h"

/*
 * namewant - the places in files that frames of a recording lie in: each
 * distinct one once, for its name.
 *
 * A place is (file, offset) of the byte that is looked up: the one before a
 * return address. Memory is bounded; what finds no room is counted.
 */

#define NAMEWANT_PLACES_MAX 1000000

struct namewant;

struct namewant_place {
	uint64_t offset;
	uint32_t file; /* of filetab */
};

/* What became of them, at the end: of places, but for `files`. */
struct namewant_stats {
	uint64_t stored; /* with a name */
	uint64_t plain; /* of these: by symbol tables alone, since debug information was not waited for */
	uint64_t files; /* that gave them */
	uint64_t unresolved; /* looked up without finding a name, or the file is not to be had any more */
	uint64_t late; /* not looked up: no time or memory was left */
};

int namewant_new(struct namewant **ret, struct err *e);
void namewant_free(struct namewant *w); /* NULL is fine */

/*
 * Has stack USTACK of process PROC (ids of the capture) in this EPOCH not been
 * added yet? It counts as added then. Rarely true for one that has been.
 */
bool namewant_is_new(struct namewant *w, uint32_t proc, uint32_t ustack, uint32_t epoch);

/*
 * The frames of S, a user stack of a process with MAPS (NULL = none known),
 * that was seen from FIRST_NS to LAST_NS. Anonymous memory is no place.
 */
void namewant_add(struct namewant *w, const struct mapset *maps, const struct cap_stack *s, uint64_t first_ns,
	uint64_t last_ns);

/* N frames that are not at hand any more. */
void namewant_miss(struct namewant *w, uint64_t n);

/* How many places were added since namewant_take(). */
size_t namewant_waiting(const struct namewant *w);

/* Those, sorted by file and offset: *N of them in fresh memory; NULL without memory. */
struct namewant_place *namewant_take(struct namewant *w, size_t *n);
uint64_t namewant_missed(const struct namewant *w);

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
