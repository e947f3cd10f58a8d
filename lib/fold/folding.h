/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * folding - paragraphs of perf script text into a table of distinct stacks.
 *
 * Well-formed text has the meaning that stackcollapse-perf.pl gives it. Damage is counted, and
 * nothing is guessed:
 *
 *   a line that is neither header nor frame, source line nor comment is skipped;
 *   a frame outside a record is skipped;
 *   a record without a blank line at its end (another one begins, or the input
 *   ends) is dropped whole, because frames may be missing; so is a record of more
 *   than PARAGRAPH_MAX bytes, and one whose period or count is not a 64-bit number.
 *
 * A stack that was seen before is recognized by its bytes and not parsed again. The memory for that
 * is bounded.
 */
#ifndef STACKTOOLS_FOLD_FOLDING_H
#define STACKTOOLS_FOLD_FOLDING_H

#include "base/err.h"
#include "base/intern.h"
#include "fold/frames.h"
#include "fold/script.h"
#include "fold/table.h"

/*
 * bodycache - the parsed meaning of the text between a header and its blank line, so that each text
 * is parsed once.
 *
 * Bodies are compared by their bytes: a hit is exact. A guess from a few bytes gives an early
 * candidate: its memory is prefetched before the comparison, and a right guess saves the hash. The
 * cache is bounded: up to half of BODYCACHE_MAX bytes it keeps every body, then only those that
 * come a second time, and when full it starts afresh.
 */

#define BODYCACHE_MAX ((size_t)32 << 20)

struct bodycache_value {
	uint32_t stack; /* id in the table of stacks */
	uint32_t bad; /* lines that are not frames */
	bool has_waker;
	uint32_t waker_at, waker_len; /* the name of the first waker, in the body; 0 = none */
	uint32_t name; /* its last name, and */
	uint32_t pair; /* that pair's index in the table */
};

struct bodycache {
	struct intern bodies;
	struct bodycache_value *values; /* index = id */
	size_t cap;
	uint32_t *seen; /* hashes of bodies that were seen but not kept */
	uint32_t *guesses; /* by a few bytes of a body: the last id for these, plus one */
};

/* 0 or -ENOMEM. Release with bodycache_free(). */
int bodycache_init(struct bodycache *c, uint64_t seed, struct err *e);
void bodycache_free(struct bodycache *c); /* a zeroed one is fine */

/* A body to look for. */
struct bodycache_key {
	const char *body;
	size_t len;
	uint64_t hash; /* 0 until bodycache_find() needs it */
	uint32_t guess; /* its index in the guesses */
};

/* The key of BODY; prefetches the body that it may be equal to. */
struct bodycache_key bodycache_expect(const struct bodycache *c, const char *body, size_t len);

/* The value, owned by the cache and to be changed in place, or NULL. */
struct bodycache_value *bodycache_find(struct bodycache *c, struct bodycache_key *k);

/* Keep *V for a body that was not found, if the cache decides to. 0 or -ENOMEM. */
int bodycache_keep(
	struct bodycache *c, const struct bodycache_key *k, const struct bodycache_value *v, struct err *e);

/* A record that was added to PAIR, an index of the table. */
struct folding_added {
	uint32_t pair;
	uint64_t weight;
	const struct perfscript_header *header;
	const struct perfscript_wait *wait;
	struct perfscript_str
		waker; /* "comm pid/tid" or "[timer]": who ended the wait; empty if not recorded */
};

/*
 * Who needs more of a record than its stack: the comments, and what distinguishes records of one stack.
 * W is zeroed for a record without a "# wait:" comment.
 */
struct folding_client {
	void *ctx;
	/* A comment outside records, which is not of a wait. */
	void (*comment)(void *ctx, const char *line, size_t len);
	/* Append to OUT what stands for the name of the process in the table. */
	void (*name)(void *ctx, const struct perfscript_header *h, const struct perfscript_wait *w,
		struct buf *out);
	/* A record of another event than the one that is folded; true: it does not count as filtered. NULL =
	 * none. */
	bool (*other)(void *ctx, const struct perfscript_header *h, const struct perfscript_wait *w);
	/* 0; 1 if the record is malformed for the client, which sets *BAD to why; or -errno. */
	int (*added)(void *ctx, const struct folding_added *a, const char **bad, struct err *e);
};

/* What of a wait is summed. */
enum folding_weight {
	FOLDING_BOTH, /* the period */
	FOLDING_BLOCKED, /* the period without runnable_ns; 0 if the thread was preempted */
	FOLDING_RUNNABLE, /* runnable_ns; the period if the thread was preempted */
};

struct folding_opts {
	bool pid, tid; /* ids after the process name; tid implies pid */
	bool threads; /* a first frame with the name of the thread */
	bool reverse; /* innermost frame first, the process last */
	bool delimit; /* "-" between user and kernel frames */
	bool wakers; /* "--", the stack of the waker, innermost frame first, and its name end the stack */
	bool module; /* "\n" and the file of the innermost user frame end the stack, if it has one */
	bool by_count; /* weigh a record by its count= (1 if missing), not by its period */
	enum folding_weight weight; /* stacks of which all is 0 are not in the table */
	bool runnable; /* runnable_ns goes below "[runnable]", preempted waits below "[preempted]" */
	bool wall; /* waits (event) and samples (also), by state: these, "[blocked]" and "[on-CPU]" */
	bool side_by_side; /* with wall: the state is the outermost frame instead */
	bool kind_frames; /* the kind of a wait, "[lock]", is the innermost frame; not with wakers */
	bool no_idle; /* without waits of kind "idle" */
	const char *const *kinds; /* lists, "poll,pipe": only waits of these kinds; NULL: of all */
	size_t n_kinds;
	/*
	 * The one to fold. NULL or "": offcpu-time if a capture's text says at its top that it has waits, for
	 * the first record may be a sample; else the first one seen.
	 */
	const char *event;
	const char *also; /* another one, for a client that knows them apart; NULL = none */
	struct foldframe_opts frames;
	const struct folding_client *client; /* NULL = none */
};

struct folding_report {
	uint64_t records; /* of the event, well-formed */
	uint64_t folded; /* of these, without those that an option leaves out */
	uint64_t samples; /* of the folded ones, those of the event also, if wall */
	uint64_t filtered; /* of other events */
	char *event; /* the one folded, NULL = none seen */
	char *other; /* the first other event, NULL = none */
	bool has_comment; /* a record of the event has a "# wait:" comment; read only if an option needs it */
	bool has_runnable; /* a record has runnable_ns, or was preempted */
	uint64_t no_runnable; /* waits without it, if it is needed: left out by weight, otherwise whole */
	uint64_t with_waker; /* of the folded ones, if wakers are folded */
	uint64_t no_kind; /* waits without a kind, if kinds are given: left out */
	uint64_t other_kinds; /* waits of kinds that are left out */
	char *other_kind; /* the first one, NULL = none */
	uint64_t malformed;
	const char *bad_path; /* position of the first one */
	uint64_t bad_line;
	const char *bad_why;
};

struct folding;

/* OPTS and what it points to must outlive *RET. Release with folding_free(). */
int folding_new(const struct folding_opts *opts, struct folding **ret, struct err *e);
void folding_free(struct folding *f); /* NULL is fine */

/* Fold all of IN. */
int folding_run(struct folding *f, struct paragraphs *in, struct err *e);

/* Fold the paragraph that IN returned last; IN gives the position of damage. 0 or -errno. */
int folding_add(struct folding *f, const struct paragraphs *in, const struct paragraph *para, struct err *e);

const struct foldtab *folding_table(const struct folding *f);
const struct folding_report *folding_report(const struct folding *f);

#endif
