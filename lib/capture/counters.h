/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counters - the meaning of a recording's counters, and the report about them.
 *
 * One table has each counter's name in a capture (capture(5)), what it counts
 * and what that means. Both recorders use it to write counters and to report
 * them, and the readers of a capture use its texts. For a counter that is not in
 * the table, from a later recorder, only the name is shown.
 */
#ifndef STACKTOOLS_CAPTURE_COUNTERS_H
#define STACKTOOLS_CAPTURE_COUNTERS_H

#include "base/bytes.h"
#include "capture/stats.h"
#include "capture/writer.h"

/* When the recorder's report shows it. */
enum counter_class {
	COUNTER_PLAIN, /* never by itself */
	COUNTER_DETAIL, /* with -v */
	COUNTER_NOTE, /* if it is not 0, like the next two */
	COUNTER_NOT_RECORDED, /* excluded by an option or a filter; with its time, the counter NAME_ns */
	COUNTER_DEGRADED,
	COUNTER_LOST /* likewise, and always with -v; the recording is incomplete */
};

struct counter {
	const char *name;
	enum counter_class class;
	const char *one, *many; /* what is counted, singular and plural; NULL = nanoseconds */
	const char *text; /* about these; "" = nothing to add */
};

/* NULL if NAME is unknown. */
const struct counter *counter_find(const char *name);

/* The name today of a counter in a capture, which may be from an earlier build. */
const char *counter_name(const char *name);

/* "waits: the aggregation map was full", singular if VALUE is 1. False, and nothing, if NAME is unknown. */
bool counter_put_meaning(struct buf *b, const char *name, uint64_t value);

/* "1 wait: the aggregation map was full"; "7 (lost.unheard_of)" if NAME is unknown. */
void counter_put(struct buf *b, const char *name, uint64_t value);

/* Whether a counter that is not 0 means that the recording is incomplete; lost.*_ns too. */
bool counter_is_loss(const char *name);

/*
 * Where the waits that were seen are. Each is in one of these; UNWRITTEN: in none of them yet, when the
 * counters were written while the recording went on.
 */
struct counters_balance {
	uint64_t seen;
	uint64_t recorded; /* in the capture */
	uint64_t unwritten, overwritten; /* of --keep */
	uint64_t filtered, lost; /* the sums of filtered.* and of those of lost.* that count waits */
};

/*
 * The balance of the counters LIST; NS: of nanoseconds, which filtered.owner, filtered.hidden,
 * lost.no_storage, lost.begin_unseen and lost.end_unknown have none of. True if it holds: the others add up
 * to SEEN.
 */
bool counters_balance(const struct cap_counter *list, size_t n, bool ns, struct counters_balance *ret);

#define COUNTERS_MAX 256

/* The counters of a recording. Zero it to initialize. The caller owns the strings. */
struct counters {
	struct cap_counter list[COUNTERS_MAX];
	size_t n;
	struct cap_outcomes user; /* how the user stacks of the waits ended */
	struct cap_outcomes cpu; /* the same of samples of what threads executed */
	bool no_waits; /* only such samples are recorded */
	const char *runtimes; /* the interpreters that processes run; NULL or "" = none */
	const char *degraded; /* what works less well and why; NULL or "" = nothing */
	const char *privileges; /* what was dropped, kept and confined; NULL or "" = not shown */
	const char *runtime_flags; /* what makes stacks through JIT code better; NULL = nothing known */
	struct {
		const char *name, *why;
	} because[10]; /* the latest reason for some counters, or what would help */
	size_t n_because;
};

void counters_add(struct counters *c, const struct cap_counter *some, size_t n);
void counters_because(struct counters *c, const char *name, const char *why);

/*
 * Hints at what would help, where it is not there already: the recorder began with CAP_SYS_PTRACE, with
 * CAP_SYS_ADMIN, and takes the deepest stacks that it can.
 */
void counters_hint(struct counters *c, bool ptrace, bool admin, bool deepest);

uint64_t counters_get(const struct counters *c, const char *name); /* 0 if missing */

/* All counters, and the waits by how their user stack ended: user.complete, user.short.no-row ... */
void counters_write(const struct counters *c, struct cap_writer *w);

/* The sum of the counters of class COUNTER_LOST. */
uint64_t counters_lost(const struct counters *c);

/* "5.0 s  1234 waits  56 stacks  7 processes  0 lost", without a newline. */
void counters_put_progress(struct buf *b, const struct counters *c, uint64_t ns);

/* The first line of a summary, after NAME: the recording's length, what it has, and its BYTES in PATH; NULL:
 * they are lost. */
void counters_put_head(struct buf *b, const struct counters *c, const char *name, uint64_t ns,
	const char *path, uint64_t bytes);

/* The lines after it: what was not recorded, how user stacks ended, what is degraded, what was lost. */
void counters_put(struct buf *b, const struct counters *c, bool verbose);

#endif
