/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counters - what the counters of a recording mean, and the report made of
 * them.
 *
 * One table has each counter's name in a capture (capture(5)), what it counts
 * and what that means. Both recorders write by it and report by it, and the
 * readers of a capture use its words. A counter that is not in it, of a later
 * recorder, has its name alone.
 */
#ifndef STACKTOOLS_CAPTURE_COUNTERS_H
#define STACKTOOLS_CAPTURE_COUNTERS_H

#include "base/bytes.h"
#include "capture/stats.h"
#include "capture/writer.h"

/* Where the recorder's report has it. */
enum counter_class {
	COUNTER_PLAIN, /* nowhere */
	COUNTER_DETAIL, /* with -v */
	COUNTER_NOTE, /* where it is not 0, as the next two */
	COUNTER_NOT_RECORDED, /* by an option or a filter; with its time, the counter NAME_ns */
	COUNTER_DEGRADED,
	COUNTER_LOST /* likewise, and with -v always; the recording is incomplete */
};

struct counter {
	const char *name;
	enum counter_class class;
	const char *one, *many; /* what is counted; NULL = nanoseconds */
	const char *text; /* about these; "" = nothing to be added */
};

/* NULL: unknown. */
const struct counter *counter_find(const char *name);

/* "waits: the aggregation map was full", by VALUE in the singular; false and nothing for an unknown one. */
bool counter_put_meaning(struct buf *b, const char *name, uint64_t value);

/* "1 wait: the aggregation map was full"; "7 (lost.unheard_of)" for an unknown one. */
void counter_put(struct buf *b, const char *name, uint64_t value);

#define COUNTERS_MAX 256

/* The counters of a recording. Zero it; strings are the caller's. */
struct counters {
	struct cap_counter list[COUNTERS_MAX];
	size_t n;
	struct cap_outcomes user; /* of the waits: how their user stacks ended */
	const char *degraded; /* what works less well and why; NULL or "" = nothing */
	const char *privileges; /* what was given up, kept and confined; NULL or "" = not told */
	struct {
		const char *name, *why;
	} because[4]; /* the latest reasons of some */
	size_t n_because;
};

void counters_add(struct counters *c, const struct cap_counter *some, size_t n);
void counters_because(struct counters *c, const char *name, const char *why);
uint64_t counters_get(const struct counters *c, const char *name); /* 0 where it is not there */

/* All of it, and of the waits those by the end of their user stack: user.complete, user.short.no-row ... */
void counters_write(const struct counters *c, struct cap_writer *w);

/* The sum of those whose class is COUNTER_LOST. */
uint64_t counters_lost(const struct counters *c);

/* "5.0 s  1234 waits  56 stacks  7 processes  0 lost", without a newline. */
void counters_put_progress(struct buf *b, const struct counters *c, uint64_t ns);

/* The first line of a summary: how long the recording NAME was, what it has, and its BYTES in PATH. */
void counters_put_head(struct buf *b, const struct counters *c, const char *name, uint64_t ns,
	const char *path, uint64_t bytes);

/* The lines behind it: what was not recorded, how user stacks ended, what is degraded, what was lost. */
void counters_put(struct buf *b, const struct counters *c, bool verbose);

#endif
