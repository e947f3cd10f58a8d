/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline - a text's waits, each at its place in time: by whom, for what, where, and who ended it.
 *
 * The text is that of `symbolize --events` (fold/script.h). A record of one wait is exact; a record of
 * several is a sum, which has no place in time: it is counted and left out. Times are in ns of
 * CLOCK_MONOTONIC. Memory: 32 bytes a wait, and what is distinct once.
 */
#ifndef STACKTOOLS_FLAME_TIMELINE_H
#define STACKTOOLS_FLAME_TIMELINE_H

#include "base/err.h"
#include "base/intern.h"
#include "base/out.h"
#include "fold/script.h"

#define TIMELINE_NONE UINT32_MAX
#define TIMELINE_KINDS_MAX 60 /* more are "other" */
#define TIMELINE_SPAN_MAX (UINT64_C(1) << 53) /* ns: what a script of a page counts exactly; 104 days */
#define TIMELINE_WAITS_MAX 10000000 /* and as many samples: a page of 200 MB */

typedef unsigned __int128 timeline_sum;

enum timeline_flags {
	TIMELINE_OPEN = 1, /* it had not ended at the end of the recording */
	TIMELINE_INITIAL = 2, /* it had begun before */
	TIMELINE_PREEMPTED = 4,
};

struct timeline_process {
	uint32_t name, id; /* strings */
	timeline_sum busy; /* of its threads */
};

struct timeline_thread {
	uint32_t name, id; /* strings; the last name that it had */
	uint32_t process;
	uint64_t waits;
	timeline_sum total; /* of its waits, in ns */
	timeline_sum busy; /* of those of other kinds than idle */
	bool idle; /* it has waits, and all are of kind idle */
};

struct timeline_waker {
	uint32_t name; /* string: "comm-pid/tid", or "[timer]" */
	uint32_t thread; /* TIMELINE_NONE: it has no record */
};

/* What events that differ only in their times share. */
struct timeline_what {
	uint32_t thread, kind, waker, stack; /* kind and waker: TIMELINE_NONE if there is none */
	uint32_t name; /* string: the thread's then */
	uint32_t flags;
};

struct timeline_event {
	uint64_t begin_ns; /* from the origin */
	uint64_t total_ns;
	uint64_t runnable_ns; /* the end of it: on a run queue; UINT64_MAX: not known */
	uint32_t what;
};

struct timeline_events {
	struct timeline_event *p; /* in order of their beginning */
	size_t n, cap;
	struct timeline_what *whats;
	size_t n_whats;
	timeline_sum total; /* in ns */
};

/* Frames from the outermost to the innermost, "-" between user and kernel; then, of each waker, "--", its
 * frames from the innermost on, and its name. */
struct timeline_stack {
	size_t first; /* in timeline->frames: strings */
	uint32_t n;
};

struct timeline {
	struct intern strings;
	struct timeline_process *processes;
	struct timeline_thread *threads;
	struct timeline_waker *wakers;
	struct timeline_stack *stacks;
	uint32_t *frames;
	uint32_t kinds[TIMELINE_KINDS_MAX]; /* strings */
	size_t n_processes, n_threads, n_wakers, n_stacks, n_frames, n_kinds;
	size_t max_processes, max_threads, max_wakers, max_stacks, max_frames;
	uint32_t idle; /* the kind, or TIMELINE_NONE */
	struct timeline_events waits, samples;
	uint64_t origin_ns; /* when the first event began */
	uint64_t span_ns; /* from there to the end of the last one */
	uint64_t longest_ns;
	uint64_t sums, summed; /* records of several waits, which are left out; the waits in them */
	uint64_t malformed; /* lines or records that were skipped, */
	const char *bad_path; /* and of the first one: where it is, and why */
	uint64_t bad_line;
	const char *bad_why;
};

/*
 * Read all of IN; WAKERS: with the stacks of wakers, and samples of what threads executed. Release with
 * timeline_free(), also after an error. -EOVERFLOW if there are more waits than a page may have, or they
 * are further apart; 0 or -errno.
 */
int timeline_read(struct timeline *t, struct paragraphs *in, bool wakers, struct err *e);
void timeline_free(struct timeline *t); /* a zeroed one is fine */

/*
 * What both pages have, as members of a JSON object with a comma each: "title", "origin" and "span" with
 * the sums of all waits; "kinds" and "idle"; "threads", an array of [name, pid, tid, name of the process];
 * "names", "nStacks" and "stacks": for each stack the number of its frames, and their names. SCRATCH has a
 * zero for each string.
 */
void timeline_put_head(struct out *o, const struct timeline *t, const char *title);
void timeline_put_kinds(struct out *o, const struct timeline *t);
void timeline_put_threads(struct out *o, const struct timeline *t, const uint32_t *threads, size_t n);
void timeline_put_stacks(
	struct out *o, const struct timeline *t, const uint32_t *stacks, size_t n, uint32_t *scratch);
void timeline_put_string(struct out *o, const struct timeline *t, uint32_t string);
void timeline_put_sum(struct out *o, const char *key, timeline_sum v); /* as a string: any size */

/* The indexes of all threads, idle ones last, the greatest sums first, those of a process together; or NULL.
 */
uint32_t *timeline_order(const struct timeline *t);

#endif
