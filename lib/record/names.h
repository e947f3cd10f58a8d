/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names - names for the places of a recording, written beside it, so that
 * it can be read where the files are not.
 *
 * Files are opened as the processes that mapped them reach them, and are used
 * when they are proven to be those that were mapped. Reading their symbols is
 * left to processes that can do nothing else (symbols/pool.h); no server is queried. A thread
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
 * name_requests - the places in files that frames of a recording lie in: each
 * distinct one once, for its name.
 *
 * A place is (file, offset) of the byte that is looked up: the one before a
 * return address. Memory is bounded; what finds no room is counted.
 */

#define NAME_REQUESTS_PLACES_MAX 1000000

struct name_requests;

struct name_requests_place {
	uint64_t offset;
	uint32_t file; /* of filetab */
};

/* What became of them, at the end: of places, but for `files`. */
struct name_requests_stats {
	uint64_t stored; /* with a name */
	uint64_t plain; /* of these: by symbol tables alone, since debug information was not waited for */
	uint64_t files; /* that gave them */
	uint64_t unresolved; /* looked up without finding a name, or the file is not to be had any more */
	uint64_t late; /* not looked up: no time or memory was left */
};

int name_requests_new(struct name_requests **ret, struct err *e);
void name_requests_free(struct name_requests *w); /* NULL is fine */

/*
 * Has stack USTACK of process PROC (ids of the capture) in this EPOCH not been
 * added yet? It counts as added then. Rarely true for one that has been.
 */
bool name_requests_is_new(struct name_requests *w, uint32_t proc, uint32_t ustack, uint32_t epoch);

/*
 * The frames of S, a user stack of a process with MAPS (NULL = none known),
 * that was seen from FIRST_NS to LAST_NS. Anonymous memory is no place.
 */
void name_requests_add(struct name_requests *w, const struct process_maps *maps, const struct cap_stack *s,
	uint64_t first_ns, uint64_t last_ns);

/* N frames that are not at hand any more. */
void name_requests_miss(struct name_requests *w, uint64_t n);

/* How many places were added since name_requests_take(). */
size_t name_requests_waiting(const struct name_requests *w);

/* Those, sorted by file and offset: *N of them in fresh memory; NULL without memory. */
struct name_requests_place *name_requests_take(struct name_requests *w, size_t *n);
uint64_t name_requests_missed(const struct name_requests *w);

struct name_store;

/* For the places of W, whose files are in FILES; names go to OUT. All stay the caller's. */
int name_store_new(struct name_requests *w, struct file_table *files, struct cap_writer *out,
	struct name_store **ret, struct err *e);
void name_store_free(struct name_store *k); /* NULL is fine; ends what is under way */

/*
 * While the recording goes on, from time to time: write the names that are there, and begin with the
 * places that came since; at low priority and for a twentieth of the time.
 */
void name_store_service(struct name_store *k);

/*
 * The recording is about to stop: begin with the rest now. Of one that was shorter than a second by symbol
 * tables alone, without lines and inlined calls: to unpack debug information would take longer than all else.
 */
void name_store_hurry(struct name_store *k);

/*
 * Write all names that are there within NS. Whatever does not get its name is counted: nothing
 * of it is an error.
 */
void name_store_finish(struct name_store *k, uint64_t ns);

void name_store_stats(const struct name_store *k, struct name_requests_stats *ret);

#endif
