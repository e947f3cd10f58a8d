/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * aggmap - the two hash maps in which BPF sums waits: one in use, one spare.
 *
 * The map in use stands in the one slot of a map in map. An update of that
 * slot returns only after every BPF program that may hold the old map has
 * ended (the kernel waits for RCU), so the old one can be read and emptied
 * without losing an update.
 */
#ifndef STACKTOOLS_AGGMAP_H
#define STACKTOOLS_AGGMAP_H

#include "base/err.h"
#include "offcpu_abi.h"
#include "system/broker.h"

#include <pthread.h>

struct aggmap {
	int outer_fd; /* the map in map, of one slot */
	int fd, spare_fd; /* in use; waiting for its turn; 0 = none */
	uint32_t size, spare_size; /* elements */
	struct opener *opener; /* the caller's: makes larger maps when this process may not; NULL = none */
	pthread_t installer;
	bool installing;
	int installing_fd; /* the map that is put in place */
	int installed; /* what the installer came to; valid when `done` */
	int done; /* atomic */
};

/*
 * Create the map in map and both maps of SIZE elements, and begin to put one
 * in place: the kernel takes about ten milliseconds for that, so it is done
 * by a thread until aggmap_settle(). Release with aggmap_close().
 */
int aggmap_open(struct aggmap *m, uint32_t size, struct err *e);

/* Wait until the first map is in place. */
int aggmap_settle(struct aggmap *m, struct err *e);
void aggmap_close(struct aggmap *m); /* a zeroed one is fine */

/*
 * The spare map takes the place of the one in use, which becomes the spare,
 * full as it is, when aggmap_swapped() is true: a thread waits for the kernel.
 * aggmap_swap() does both at once. Nothing else may be called in between.
 */
void aggmap_begin_swap(struct aggmap *m);
bool aggmap_swapped(struct aggmap *m); /* without waiting */
int aggmap_end_swap(struct aggmap *m, struct err *e); /* waits for it */
int aggmap_swap(struct aggmap *m, struct err *e);

/*
 * Hand out every element of the spare map and delete it. When it had been half
 * full, a spare of twice the size takes its place (up to 4 million elements;
 * without memory it stays as it is). TAKE may be NULL.
 */
int aggmap_empty(struct aggmap *m,
	void (*take)(void *ctx, const struct offcpu_key *key, const struct offcpu_value *value), void *ctx,
	struct err *e);

/* Elements that the map in use has room for. */
uint32_t aggmap_room(const struct aggmap *m);

#endif
