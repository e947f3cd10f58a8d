/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stats - sums over a capture: by process, and by how its stacks ended.
 *
 * Sums saturate: a capture may hold any number.
 */
#ifndef STACKTOOLS_CAPTURE_STATS_H
#define STACKTOOLS_CAPTURE_STATS_H

#include "base/bytes.h"
#include "capture/reader.h"
#include "capture/types.h"

struct cap_stats_sum {
	uint64_t waits, off_ns, longest_ns;
	uint64_t open; /* of the waits: still going on at the end */
	size_t threads; /* that had a wait or a name */
	size_t stacks; /* distinct pairs of a kernel and a user stack */
};

/* The stacks that ended the same way, and the waits that have one of them. */
struct cap_stats_group {
	uint8_t kind, verdict, reason;
	int32_t error;
	uint64_t stacks, waits, off_ns;
};

struct cap_stats {
	struct cap_stats_sum total, *procs; /* procs: index = id */
	struct cap_stats_group *groups; /* sorted by kind, verdict, reason, error */
	size_t n_groups;
	uint64_t end_ns; /* the trailer's, else the last flush's, else the beginning */
};

/* 0 or -ENOMEM. Release with cap_stats_free(). */
int cap_stats_make(const struct cap_reader *c, struct cap_stats *ret);
void cap_stats_free(struct cap_stats *s);

/*
 * cap_outcomes - of how many waits the user stack is complete, and how the others
 * ended.
 *
 * Waits that can have no user stack are left aside: those of kernel threads,
 * and all of them where no user stacks were to be recorded.
 */

/* By waits; sums saturate. */
struct cap_outcomes {
	uint64_t verdicts[VERDICT_FAILED + 1]; /* 0: unknown ones */
	uint64_t reasons[REASON_COUNT + 1]; /* of those that stopped or failed; the last: unknown ones */
};

void cap_outcomes_add(struct cap_outcomes *ends, unsigned int verdict, unsigned int reason, uint64_t waits);

/* The waits that can have a user stack. */
uint64_t cap_outcomes_waits(const struct cap_outcomes *ends);

/*
 * "98.11 % of 4231 waits complete; 70 no-row; 10 unverified", without a
 * newline. The share is rounded down: 100 % is said where all are.
 */
void cap_outcomes_put(struct buf *b, const struct cap_outcomes *ends);

/*
 * cap_stop_places - where the walks of user stacks stopped: for each reason and
 * file, how many waits have such a stack.
 */

struct cap_stop_places_stop {
	uint8_t reason; /* enum cap_reason, or a number that is none */
	bool mapped; /* the PC lay in a known mapping: of `file`, or of memory that is no file's */
	uint32_t file; /* CAPTURE_NONE where there is none */
	uint64_t places; /* distinct ones */
	uint64_t waits, off_ns; /* sums saturate */
	/* Where most of these waits stopped: bytes into the file, or the PC itself where no file is. */
	uint64_t place;
};

struct cap_stop_places {
	struct cap_stop_places_stop *list; /* most waits first */
	size_t n;
};

/* 0 or -ENOMEM. Release with cap_stop_places_free(). */
int cap_stop_places_make(const struct cap_reader *c, struct cap_stop_places *ret);
void cap_stop_places_free(struct cap_stop_places *s);

/*
 * cap_stack_files - the files of a capture that frames of its user stacks lie in.
 */

struct cap_stack_files {
	uint32_t *files; /* cap_file ids, ascending */
	uint32_t *procs; /* of each, one process that mapped it: its cap_proc id */
	size_t n;
};

/*
 * Every file that an address of a sample's user stack is looked up in. 0 or
 * -ENOMEM. O(frames of the distinct pairs of process and stack). Release with cap_stack_files_free().
 */
int cap_stack_files_make(const struct cap_reader *c, struct cap_stack_files *ret);
void cap_stack_files_free(struct cap_stack_files *f); /* a zeroed one is fine */

/*
 * cap_mode - in which mode a capture was recorded, and what that means for its
 * numbers.
 *
 * Source: the options "mode", "tried" and "frequency" and the counters "procfs.*", see
 * docs/capture.5. A capture of mode procfs holds estimates: /proc was looked at
 * again and again, and whoever shows its waits has to say so.
 */

struct cap_mode {
	const char *name; /* "btf", "raw", "procfs"; "" = not said: recorded by an earlier version */
	const char
		*tried; /* why it is no better one, "not btf: ...", a line for each; "" = it was asked for */
	bool best; /* btf, or not said: nothing to be told */
	bool sampled; /* samples, not exact waits; what follows counts only then */
	bool checked; /* schedstat was there for the threads that were recorded */
	uint64_t hz; /* samples a second that were asked for */
	uint64_t looks, late, left_out; /* samples taken; of them, late; not taken */
	uint64_t estimated_ns; /* off-CPU time by the samples alone */
	uint64_t schedstat_ns; /* the same by the scheduler's account */
};

/* What C says. Strings are C's. */
void cap_mode_get(const struct cap_reader *c, struct cap_mode *ret);

/* "raw: not btf: cannot read ..." for all but the best; lines become "; ". No newline. */
void cap_mode_put_why(struct buf *b, const struct cap_mode *m);

/*
 * "estimates, not exact waits: 495 samples at 99 Hz, checked against schedstat:
 * off-CPU estimated 4.951 s, by schedstat 4.947 s"; nothing for exact ones. No
 * newline.
 */
void cap_mode_put(struct buf *b, const struct cap_mode *m);

#endif
