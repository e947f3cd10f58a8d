/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jitwatch - processes that make code, and the files in which they tell of it.
 *
 * A process is watched from when it first maps executable memory that is no
 * file's, or a jitdump file; or from when a stack shows that it has done so.
 * Its files are looked for while it lives and kept open, so that they outlive
 * it; those of one that has no samples are given up some time after its end.
 */
#ifndef STACKTOOLS_JITWATCH_H
#define STACKTOOLS_JITWATCH_H

#include "record/imagetab.h"
#include "record/jitfile.h"
#include "record/pastmap.h"
#include "system/events.h"

struct jitwatch {
	struct jitfile_owner owner;
	uint64_t since_ns; /* it was there then, as this image */
	uint32_t proc; /* in the capture; CAP_NONE = no sample yet */
	uint32_t next; /* free ones are chained */
	bool over; /* ended, or another image by now */
	bool free;
	bool no_room; /* a file of it could not be kept open */
	int map, dump; /* descriptors for reading, -1 = none */
};

struct jitwatches {
	struct jitwatch *all;
	size_t n, cap;
	uint32_t free; /* UINT32_MAX = none */
	struct idmap by_tgid; /* the newest of a tgid */
	size_t n_fds;
	uint64_t look_ns; /* not before */
	struct opener *opener; /* set it after jitwatch_init(); NULL = none */
};

void jitwatch_init(struct jitwatches *t);
void jitwatch_free(struct jitwatches *t); /* releases what it holds */

/* TRACKED: is the life of EV's process followed? */
void jitwatch_event(struct jitwatches *t, const struct procevent *ev, bool tracked);

/* Now and then: look for files. */
void jitwatch_look(struct jitwatches *t, uint64_t now_ns);

/*
 * The number in `all` of the watch of image IM, from now on that of PROC in the capture;
 * UINT32_MAX: it ended before it could be looked at, or there is no room. NOW_NS is a time
 * at which it is IM.
 */
uint32_t jitwatch_bind(struct jitwatches *t, uint32_t proc, const struct pastmap *past,
	const struct image *im, uint64_t now_ns);

/* See to it that `over` and the ends are those of now. */
void jitwatch_settle(struct jitwatches *t, uint64_t now_ns);

/*
 * Open the perf map of W once more by its name, which may be another file by
 * now; where there is none the one that was found before stays. -EMEDIUMTYPE for
 * what is no regular file.
 */
int jitwatch_reopen(struct jitwatches *t, struct jitwatch *w);
void jitwatch_close(struct jitwatches *t, struct jitwatch *w);

#endif
