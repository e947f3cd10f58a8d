/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stats - sums over a capture: by process, and by how its stacks ended.
 *
 * Sums saturate, because a capture may hold any number.
 */
#ifndef STACKTOOLS_CAPTURE_STATS_H
#define STACKTOOLS_CAPTURE_STATS_H

#include "base/bytes.h"
#include "base/json.h"
#include "capture/reader.h"
#include "capture/types.h"

struct cap_stats_sum {
	uint64_t waits, off_ns, longest_ns;
	uint64_t open; /* waits that had not ended when the recording stopped */
	size_t threads; /* that had a wait or a name */
	size_t stacks; /* distinct pairs of a kernel and a user stack */
};

/* Stacks that ended the same way, and the waits that have one of them. */
struct cap_stats_group {
	uint8_t kind, verdict, reason;
	int32_t error;
	uint64_t stacks, waits, off_ns;
};

/*
 * cap_outcomes - how the user stacks of the waits ended, or those of samples.
 *
 * Waits that cannot have a user stack are ignored: those of kernel threads, and
 * all of them if user stacks were not requested.
 */

/* Numbers of waits; sums saturate. */
struct cap_outcomes {
	uint64_t verdicts[VERDICT_FAILED + 1]; /* [0]: unknown verdicts */
	uint64_t reasons[REASON_COUNT + 1]; /* of those that stopped or failed; the last: unknown reasons */
};

struct cap_stats {
	struct cap_stats_sum total, *procs; /* procs: index = id */
	struct cap_stats_group *groups; /* sorted by kind, verdict, reason, error */
	size_t n_groups;
	uint64_t end_ns; /* the latest of trailer, last flush and start */
	/* samples of threads that ran, which are in nothing above but the numbers of stacks */
	uint64_t cpu_samples, cpu_ns;
	struct cap_outcomes cpu;
};

/* 0 or -ENOMEM. Release with cap_stats_free(). */
int cap_stats_make(const struct cap_reader *c, struct cap_stats *ret);
void cap_stats_free(struct cap_stats *s);

void cap_outcomes_add(struct cap_outcomes *ends, unsigned int verdict, unsigned int reason, uint64_t waits);

/* The waits that can have a user stack. */
uint64_t cap_outcomes_waits(const struct cap_outcomes *ends);

/*
 * "98.11 % of 4231 waits complete; 70 no-row; 10 unverified", without a
 * newline. The share is rounded down: it is 100 % only if all are complete.
 */
void cap_outcomes_put(struct buf *b, const struct cap_outcomes *ends, const char *one, const char *many);

/*
 * cap_stop_places - where the walks of user stacks stopped: the number of waits
 * for each reason and file.
 */

struct cap_stop_places_stop {
	uint8_t reason; /* enum cap_reason, or an unknown number */
	bool mapped; /* the PC was in a known mapping: of `file`, or of memory without a file */
	uint32_t file; /* CAPTURE_NONE if there is none */
	uint64_t places; /* distinct ones */
	uint64_t waits, off_ns; /* sums saturate */
	/* Where most of these waits stopped: bytes into the file, or the PC itself if there is no file. */
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
 * cap_stack_files - the files of a capture that contain frames of its user stacks.
 */

struct cap_stack_files {
	uint32_t *files; /* cap_file ids, ascending */
	uint32_t *procs; /* for each file, the cap_proc id of one process that mapped it */
	size_t n;
};

/*
 * Find every file in which an address of a sample's user stack is looked up. 0 or
 * -ENOMEM. O(frames of the distinct pairs of process and stack). Release with
 * cap_stack_files_free().
 */
int cap_stack_files_make(const struct cap_reader *c, struct cap_stack_files *ret);
void cap_stack_files_free(struct cap_stack_files *f); /* a zeroed one is fine */

/*
 * cap_mode - the mode in which a capture was recorded, and what that means for
 * its numbers.
 *
 * Source: the options "mode", "tried" and "frequency" and the counters
 * "procfs.*", see docs/capture.5. A capture of mode procfs holds estimates from
 * samples of /proc, and a program that shows its waits has to say so.
 */

struct cap_mode {
	const char *name; /* "btf", "raw", "procfs"; "" = not known: recorded by an earlier version */
	const char *tried; /* why it is not a better mode, "not btf: ...", a line each; "" = requested */
	bool best; /* btf, or not known: nothing to report */
	bool sampled; /* estimates from samples, not exact waits; the fields below apply only then */
	bool checked; /* some of the threads had schedstat */
	uint64_t hz; /* requested samples per second */
	uint64_t samples, late, skipped; /* taken; of these, late; not taken for lack of time */
	uint64_t estimated_ns; /* off-CPU time by the samples alone */
	uint64_t schedstat_ns; /* the same by the scheduler's account */
};

/* What C says about its mode. C owns the strings. */
void cap_mode_get(const struct cap_reader *c, struct cap_mode *ret);

/* "raw: not btf: cannot read ..."; nothing for the best mode. Lines are joined by "; ". No newline. */
void cap_mode_put_why(struct buf *b, const struct cap_mode *m);

/*
 * "estimates, not exact waits: 495 samples at 99 Hz, checked against schedstat:
 * off-CPU estimated 4.951 s, by schedstat 4.947 s"; nothing if waits are exact. No
 * newline.
 */
void cap_mode_put(struct buf *b, const struct cap_mode *m);

/* The member "samples" of an object: null if waits are exact. */
void cap_mode_put_json(struct json *j, const struct cap_mode *m);

#endif
