/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * namewant - the places in files that frames of a recording lie in: each
 * distinct one once, for its name.
 *
 * A place is (file, offset) of the byte that is looked up: the one before a
 * return address. Memory is bounded; what finds no room is counted.
 */
#ifndef STACKTOOLS_NAMEWANT_H
#define STACKTOOLS_NAMEWANT_H

#include "base/err.h"
#include "capture/types.h"
#include "record/mapset.h"

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

#endif
