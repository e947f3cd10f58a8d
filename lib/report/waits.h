/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits - a text's records in memory: who waited, where, and how long, summed by stack, thread, kind
 * and state.
 *
 * The text is that of symbolize or of perf script (fold/script.h), or folded lines; its first line
 * decides. Memory grows with the number of distinct stacks, not with the text, unless each wait is kept.
 *
 * A path is the user functions of a stack and the system call that it is in. Kernel functions below the
 * system call do not belong to it, except in a stack without user functions and system call: that of
 * a kernel thread.
 */
#ifndef STACKTOOLS_REPORT_WAITS_H
#define STACKTOOLS_REPORT_WAITS_H

#include "base/err.h"
#include "base/intern.h"
#include "fold/folding.h"

/* Exact: 2^60 records of the greatest time. */
typedef unsigned __int128 wait_sum;

#define WAITS_NONE UINT32_MAX

struct wait_stats {
	wait_sum total; /* in ns if waits->is_time */
	wait_sum count;
	wait_sum split; /* the part of TOTAL of which it is known what was runnable */
	wait_sum runnable; /* of SPLIT: on a run queue, after the wake-up */
	wait_sum single; /* of COUNT: waits that have a record to themselves */
	wait_sum whole; /* waits that last from the beginning of the recording to its end */
	uint64_t max_ns;
	bool has_max;
	/*
	 * At least the sum of the squares of the waits: exact for records of one wait, else the record's
	 * total times its longest, or its mean if the longest is not known: such are samples, all alike.
	 */
	double squares;
};

void wait_stats_add(struct wait_stats *to, const struct wait_stats *s);
wait_sum wait_stats_mean(const struct wait_stats *s); /* rounded; 0 without a count */

struct wait_path {
	size_t first; /* in waits->functions: strings, outermost first */
	uint32_t n;
	uint32_t call; /* string: the system call; 0 = none */
	bool kernel; /* the functions are the kernel's */
};

struct wait_process {
	uint32_t id, name; /* strings */
};

struct wait_thread {
	uint32_t id, name; /* strings; the first name that the text has for it */
	uint32_t process; /* index */
};

/* What ended since the flush before. */
struct wait_last {
	wait_sum total, count;
};

struct wait_row {
	uint32_t path, thread; /* indexes; thread WAITS_NONE: not known */
	uint32_t process;
	uint32_t comm; /* string: the name of the thread at that time */
	uint32_t kind, state, waker; /* strings; 0 = not known */
	uint32_t module; /* string: the file of the innermost user frame */
	uint32_t first_bin; /* of its single waits, in waits->bins; WAITS_NONE */
	struct wait_stats stats;
	struct wait_last last;
};

/*
 * How many single waits of a row are about as long: a histogram whose buckets are at most 1/64 as wide as
 * what is in them, so that the middle of one is wrong by 1/128, 0.8 %, at most; below 128 ns it is exact.
 */
struct wait_bin {
	uint32_t row, bucket;
	uint32_t next; /* of the row, in no order; WAITS_NONE */
	uint64_t count;
};

#define WAIT_BUCKETS 3776 /* wait_bucket(UINT64_MAX) + 1 */

uint32_t wait_bucket(uint64_t ns);
uint64_t wait_bucket_ns(uint32_t bucket); /* its middle */

/* A wait by itself. It ends before 2^64 ns. */
struct wait_event {
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
	uint64_t len_ns;
	uint64_t runnable_ns; /* at its end, on a run queue; WAIT_NOT_KNOWN */
	uint32_t row;
	uint32_t waker; /* index in waits->wakers; WAITS_NONE: not recorded */
	bool open; /* had not ended when the recording did */
};

#define WAIT_NOT_KNOWN UINT64_MAX

/* What a thread executed when the clock fired. */
struct wait_sample {
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	uint32_t row;
};

struct wait_waker {
	uint32_t name; /* string: of the thread, or "[timer]" and the like */
	uint32_t thread; /* index; WAITS_NONE: it has no waits here */
	bool interrupt;
};

struct wait_loss {
	uint32_t name;
	uint64_t count;
};

enum waits_unit { WAITS_UNIT_AUTO, WAITS_UNIT_NS, WAITS_UNIT_US, WAITS_UNIT_MS, WAITS_UNIT_COUNT };

struct waits {
	struct intern strings; /* 0 is "" */
	uint32_t *functions; /* of all paths */
	size_t n_functions, max_functions;
	struct wait_path *paths;
	size_t n_paths, max_paths;
	struct wait_process *processes;
	size_t n_processes, max_processes;
	struct wait_thread *threads;
	size_t n_threads, max_threads;
	struct wait_row *rows;
	size_t n_rows;
	struct wait_bin *bins; /* in the order of the text */
	size_t n_bins, max_bins;
	struct wait_event *events; /* in the order of the text; NULL unless requested */
	size_t n_events, max_events;
	struct wait_sample *samples; /* likewise */
	size_t n_samples, max_samples;
	uint64_t n_sums; /* waits that are not among EVENTS, because the text has only sums of them */
	struct wait_waker *wakers; /* of EVENTS */
	size_t n_wakers;
	struct wait_loss *lost; /* of the recorder, as the text reports it */
	size_t n_lost, max_lost;
	uint32_t damaged; /* string: what is damaged in the capture; 0 = nothing */
	bool no_end; /* that is no more than its end, which is missing */
	uint64_t elapsed_ns; /* of all recordings; 0 = not known */
	uint64_t last_ns; /* of it, since the flush before */
	uint64_t start_ns; /* CLOCK_MONOTONIC when the first one began; 0 = not known */
	size_t n_stacks; /* distinct ones, with their kernel functions */
	bool is_time; /* totals are in ns; else they are waits (unit count), or periods of EVENT */
	bool folded; /* there are no counts */
	bool has_max, has_kind, has_state, has_split; /* whether any record has them */
	uint32_t event; /* string: the one that is counted; 0 = none in the text */
	enum waits_unit unit; /* of the numbers in the text, where it does not say so itself */

	/* Samples of what threads executed, where waits are counted: the time of their periods. */
	wait_sum on_cpu_ns, n_on_cpu;

	bool is_text; /* its first line is one that such text begins with */
	uint64_t n_records; /* counted */
	uint64_t n_filtered; /* of other events, */
	uint32_t other; /* string: the first of which is this one */
	uint64_t n_malformed; /* lines or records that were skipped, */
	const char *bad_path; /* and of the first one: where it is, and why */
	uint64_t bad_line;
	const char *bad_why;
};

struct waits_opts {
	enum waits_unit unit;
	const char *event; /* NULL: as folding chooses it */
	bool each; /* keep each wait, 40 bytes, too */
	const char *samples; /* and each record, 16 bytes, of this other event; NULL: none */
};

/* Read all of IN. Release with waits_free(), also after an error. 0 or -errno. */
int waits_read(struct waits *w, struct paragraphs *in, const struct waits_opts *opts, struct err *e);

/*
 * The same in pieces, of a text that is still being written: waits_next() reads up to the next flush, after
 * which W has all that came until then, and waits_rest() reads to the end. OPTS->event must outlive *RET.
 * Release with waits_close(), also after an error; W, which must stay where it is, with waits_free().
 */
struct waits_reader;

int waits_open(struct waits *w, struct paragraphs *in, const struct waits_opts *opts,
	struct waits_reader **ret, struct err *e);
int waits_next(struct waits_reader *r, struct err *e); /* 1 after a flush, 0 at the end, or -errno */
int waits_rest(struct waits_reader *r, struct err *e); /* 0 or -errno */
int waits_sum_up(struct waits_reader *r, struct err *e); /* W has what was read so far; 0 or -ENOMEM */
void waits_close(struct waits_reader *r); /* NULL is fine */
void waits_free(struct waits *w); /* a zeroed one is fine */

/*
 * Instead: the distinct stacks of IN, as fold prints them, with W for all that is not of a row. KINDS
 * (NULL: all) and NO_IDLE select records that have kinds.
 */
struct waits_stacks {
	struct foldtab_lines lines; /* sums in ns if W->is_time */
	struct folding *folding; /* owns what LINES refer to, or OWN does */
	struct foldtab own;
};

struct waits_selection {
	const char *event; /* NULL: as folding chooses it */
	const char *kinds; /* NULL: all */
	bool no_idle;
};

/* Release both also after an error. 0 or -errno. */
int waits_fold(struct waits *w, struct waits_stacks *ret, struct paragraphs *in, enum waits_unit unit,
	const struct waits_selection *select, struct err *e);
void waits_stacks_free(struct waits_stacks *s); /* a zeroed one is fine */

/* Whether records or lines were skipped, with a message; that of other events is not an error. */
bool waits_filtered(const struct waits *w, struct err *e);
bool waits_malformed(const struct waits *w, const char *tool, struct err *e);
/* Whether what was read is no text of waits, with a message: its first line is none, nor are most of the
 * others. */
bool waits_other_input(const struct waits *w, const char *tool, struct err *e);
const char *waits_file_name(const char *path); /* "standard input" for "-" */

/*
 * 0 if waits were kept by themselves, at least most of them, or -ENODATA: PATH has only sums. The other
 * function: whether it has sums too, with a message.
 */
int waits_need_each(const struct waits *w, const char *path, struct err *e);
bool waits_have_sums(const struct waits *w, struct err *e);

/* When the recording began, or if that is not known the first of its waits; CLOCK_MONOTONIC. */
uint64_t waits_start(const struct waits *w);
/* When it ended, or the last of its waits. */
uint64_t waits_end(const struct waits *w);

static inline const char *waits_string(const struct waits *w, uint32_t id, size_t *len)
{
	return intern_text(&w->strings, id, len);
}

#endif
