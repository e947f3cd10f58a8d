/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names - names for the addresses of a recording, stored in its capture, so
 * that it can be read without the files.
 *
 * Files are opened as the processes that mapped them reach them, and are used
 * only if they are proven to be those that were mapped. Processes that can do
 * nothing else read their symbols (symbols/pool.h); no server is queried. A
 * thread waits for them, so that most of the work is done during the recording.
 */
#ifndef STACKTOOLS_RECORD_NAMES_H
#define STACKTOOLS_RECORD_NAMES_H

#include "base/err.h"
#include "capture/types.h"
#include "capture/writer.h"
#include "record/files.h"
#include "record/processes.h"

/*
 * name_requests - the distinct places in files of a recording's frames, to be
 * named.
 *
 * A place is (file, offset) of the byte to look up: for a return address, the
 * byte before it. Memory is bounded; places that find no room are counted.
 */

#define NAME_REQUESTS_PLACES_MAX 1000000

struct name_requests;

struct name_requests_place {
	uint64_t offset;
	uint32_t file; /* number in the file_table */
};

/* The outcome, in places, except `files`. */
struct name_requests_stats {
	uint64_t stored; /* with a name */
	uint64_t plain; /* of these, by symbol tables only, without waiting for debug information */
	uint64_t files; /* that provided names */
	uint64_t unresolved; /* no name found, or the file is no longer available */
	uint64_t late; /* not looked up: no time or memory was left */
};

int name_requests_new(struct name_requests **ret, struct err *e);
void name_requests_free(struct name_requests *w); /* NULL is fine */

/*
 * Has stack USTACK of process PROC (ids of the capture) in this EPOCH not been
 * added yet? Marks it as added. Rarely also true for one that was added.
 */
bool name_requests_is_new(struct name_requests *w, uint32_t proc, uint32_t ustack, uint32_t epoch);

/*
 * Add the frames of S, a user stack of a process with MAPS (NULL = none known),
 * seen from FIRST_NS to LAST_NS. Skips frames in anonymous memory.
 */
void name_requests_add(struct name_requests *w, const struct process_maps *maps, const struct cap_stack *s,
	uint64_t first_ns, uint64_t last_ns);

/* Count N frames that are no longer available. */
void name_requests_miss(struct name_requests *w, uint64_t n);

/* How many places were added since name_requests_take(). */
size_t name_requests_waiting(const struct name_requests *w);

/* Take these places, sorted by file and offset: *N of them, free(3) them; NULL without memory. */
struct name_requests_place *name_requests_take(struct name_requests *w, size_t *n);
uint64_t name_requests_missed(const struct name_requests *w);

struct name_store;

/* Name the places of W, whose files are in FILES, and write the names to OUT. All stay the caller's. */
int name_store_new(struct name_requests *w, struct file_table *files, struct cap_writer *out,
	struct name_store **ret, struct err *e);
void name_store_free(struct name_store *k); /* NULL is fine; stops work in progress */

/*
 * Call it from time to time during the recording: writes the names that are
 * ready and starts on the places added since, at low priority and for at most a
 * twentieth of the time.
 */
void name_store_service(struct name_store *k);

/*
 * Look the rest up, and write all names that are ready within NS. Places without a
 * name are counted; this is not an error. If the recording was shorter than a second,
 * use only symbol tables, without lines and inlined calls: unpacking debug information
 * would take longer than everything else.
 */
void name_store_finish(struct name_store *k, uint64_t ns);

void name_store_stats(const struct name_store *k, struct name_requests_stats *ret);

#endif
