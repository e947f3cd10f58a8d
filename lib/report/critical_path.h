/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * critical_path - which chain of waits and runs made up a thread's time.
 *
 * The path is found backwards, from the end of a window of time to its beginning, and each nanosecond belongs
 * to one part of it:
 *
 * - running: between two waits, on a CPU as far as is known. If the clock fired meanwhile, the time
 *   is divided among what the thread executed then.
 *
 * - runnable: at the end of a wait, on a run queue: after the wake-up, or since it lost the CPU.
 *
 * - blocked: before that. If another thread ended the wait and was recorded, the path goes on in that thread,
 *   from the wake-up back to where the wait began, and returns. Else it is the wait itself.
 *
 * A waker cannot be blocked while it wakes, but the time of the wake-up is the scheduler's account of what
 * was runnable, counted back from the end of the wait. It can be late or early:
 *
 * - Late: a CPU takes a thread that another CPU has woken when it comes to that, and the waker may wait
 *   already. That long the thread counts as runnable, if it is not longer than CRITICAL_SLACK_NS.
 *
 * - Early: Linux 6.12 and later leave a thread that sleeps on its run queue for a while, and count it as
 *   runnable from then on if it is moved to another CPU. (A recording with wakers cuts that.) If the waker's
 *   own wait was over before the thread ran, the path goes on in that wait.
 *
 * Else the records contradict one another, and the wait is not followed.
 *
 * Records may be anything: waits of a thread that overlap are cut, and a path never has a thread below
 * itself. So a path has at most three parts for each wait, and their sum is the window.
 */
#ifndef STACKTOOLS_REPORT_CRITICAL_PATH_H
#define STACKTOOLS_REPORT_CRITICAL_PATH_H

#include "report/waits.h"

#define CRITICAL_SLACK_NS 1000000

enum critical_what {
	CRITICAL_RUNNING,
	CRITICAL_RUNNABLE,
	CRITICAL_BLOCKED,
	CRITICAL_OUTSIDE, /* before a thread's first wait or after its last: running, or not there */
	CRITICAL_WHATS,
};

/* Why a blocked part is not explained by another thread. */
enum critical_end {
	CRITICAL_BY_INTERRUPT, /* explained: by a timer, a disk, ... */
	CRITICAL_NOT_ENDED, /* when the recording did */
	CRITICAL_NO_WAKER, /* not recorded who */
	CRITICAL_HIDDEN, /* a process that may not be seen */
	CRITICAL_NOT_RECORDED, /* a thread that has no waits in the recording */
	CRITICAL_CONTRADICTION, /* a thread that was blocked itself */
	CRITICAL_ENDS,
};

struct critical_segment {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC */
	uint32_t thread; /* index */
	uint32_t event; /* index of the wait that is runnable or blocked; WAITS_NONE */
	enum critical_what what;
	enum critical_end end; /* of what is blocked */
};

struct critical_wait {
	uint64_t begin_ns, end_ns;
	uint32_t event;
};

/* What a thread executed when the clock fired. */
struct critical_sample {
	uint64_t at_ns;
	uint32_t path;
};

struct critical_waits {
	const struct waits *w;
	struct critical_wait
		*p; /* of all threads: by thread, then by time, without gap or overlap within it */
	size_t *first; /* by thread, and one more */
	struct critical_sample *samples; /* of all threads: by thread, then by time */
	size_t *first_sample; /* by thread, and one more */
	size_t n_cut; /* waits that overlapped others of their thread */
	bool *on_path; /* by thread, while walking */
};

/* W must have kept each wait. 0 or -ENOMEM. Release with critical_free(). */
int critical_make(struct critical_waits *c, const struct waits *w, struct err *e);
void critical_free(struct critical_waits *c); /* a zeroed one is fine */

/* Takes a part; 0 or -errno. */
typedef int critical_take(void *ctx, const struct critical_segment *s, struct err *e);

/* Give TAKE the path of THREAD in [FROM, TO), the last part first. 0, -ENOMEM, or what TAKE returned. */
int critical_walk(const struct critical_waits *c, uint32_t thread, uint64_t from, uint64_t to,
	critical_take *take, void *ctx, struct err *e);

/* Equal parts of a path, together. */
struct critical_part {
	uint32_t thread;
	enum critical_what what;
	enum critical_end end;
	bool sampled; /* running: its part of the time by samples */
	uint32_t path, kind; /* of what is blocked; the former also of what is sampled */
	uint32_t waker; /* string: who ended it; 0 = not known */
	wait_sum total;
	uint64_t count, max_ns; /* of stretches of time */
	/* while adding: the last stretch, and what this has of it */
	uint64_t stretch, stretch_ns;
};

struct critical_path {
	wait_sum total; /* = of the parts, and of what they are */
	wait_sum of[CRITICAL_WHATS];
	wait_sum blocked[CRITICAL_ENDS];
	wait_sum sampled; /* of what is running */
	uint64_t n_samples, n_stretches;
	struct critical_part *parts; /* the greatest first */
	size_t n, cap;
	struct critical_segment *segments; /* in order of time, if requested */
	size_t n_segments, max_segments;
	struct idmap by_place, by_part;
};

/*
 * Add a window to PATH, which begins zeroed; critical_sort() ends it. Release with critical_path_free(), also
 * after an error.
 */
int critical_add(struct critical_path *path, const struct critical_waits *c, uint32_t thread, uint64_t from,
	uint64_t to, bool segments, struct err *e);
void critical_sort(struct critical_path *path);
void critical_path_free(struct critical_path *path);

/*
 * Requests: the time between two waits of THREAD in which the function MARK, a string, is on the stack, from
 * the end of one to the beginning of the next. *I is 0 at first. True with the next one in [FROM, TO).
 */
bool critical_next_request(const struct critical_waits *c, uint32_t thread, uint32_t mark, size_t *i,
	uint64_t from, uint64_t to, uint64_t *begin, uint64_t *end);

#endif
