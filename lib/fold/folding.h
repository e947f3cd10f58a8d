/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * folding - paragraphs of perf script text into a table of distinct stacks.
 *
 * The meaning is stackcollapse-perf.pl's where the text is well-formed. Where
 * it is not, the damage is counted and nothing is guessed:
 *
 *   a line that is neither header nor frame, source line nor comment is skipped;
 *   a frame outside a record is skipped;
 *   a record that no blank line ends (another one begins, or the input ends)
 *   is left out whole, as frames may be missing; so is one of more than
 *   PARAGRAPH_MAX bytes, and one whose period or count is no 64-bit number.
 *
 * A stack that was seen before is known by its bytes and not taken apart again.
 * What is kept for that is bounded.
 */
#ifndef STACKTOOLS_FOLD_FOLDING_H
#define STACKTOOLS_FOLD_FOLDING_H

#include "base/err.h"
#include "base/intern.h"
#include "fold/frames.h"
#include "fold/script.h"
#include "fold/table.h"

/*
 * bodycache - what the text between a header and its blank line was found to
 * mean, so that it is taken apart once.
 *
 * Bodies are known by their bytes: a hit is exact. A guess from a few of the
 * bytes says early which body it may be, so that its memory is under way before
 * the comparison, and a right guess saves the hash. Bounded: up to half of
 * BODYCACHE_MAX bytes every body is kept, then only those that come a second
 * time, and a full cache starts afresh.
 */

#define BODYCACHE_MAX ((size_t)32 << 20)

struct bodycache_value {
	uint32_t stack; /* id in the table of stacks */
	uint32_t bad; /* lines that are no frames */
	uint32_t name; /* whose it was the last time, and */
	uint32_t pair; /* that pair's index in the table */
};

struct bodycache {
	struct intern bodies;
	struct bodycache_value *values; /* index = id */
	size_t cap;
	uint32_t *seen; /* hashes of bodies that came and were not kept */
	uint32_t *guesses; /* by a few bytes of a body: the id that it had last, plus one */
};

/* 0 or -ENOMEM. Release with bodycache_free(). */
int bodycache_init(struct bodycache *c, uint64_t seed, struct err *e);
void bodycache_free(struct bodycache *c); /* a zeroed one is fine */

/* What is known of a body that is looked for. */
struct bodycache_key {
	const char *body;
	size_t len;
	uint64_t hash; /* 0 until bodycache_find() needed it */
	uint32_t guess; /* where in the guesses it is */
};

/* The key of BODY; what it may be equal to is fetched towards the processor. */
struct bodycache_key bodycache_expect(const struct bodycache *c, const char *body, size_t len);

/* The value, the cache's own and to be changed in place, or NULL. */
struct bodycache_value *bodycache_find(struct bodycache *c, struct bodycache_key *k);

/* Keep *V for a body that was not found, or do not. 0 or -ENOMEM. */
int bodycache_keep(
	struct bodycache *c, const struct bodycache_key *k, const struct bodycache_value *v, struct err *e);

struct folding_opts {
	bool pid, tid; /* ids behind the process name; tid implies pid */
	bool threads; /* a first frame that names the thread */
	bool reverse; /* innermost frame first, the process last */
	bool delimit; /* "-" between user and kernel frames, "--" before a waker */
	bool by_count; /* weigh a record by its count= (1 without), not by its period */
	const char *event; /* the one to fold; NULL or "": the first one seen */
	struct foldframe_opts frames;
};

struct folding_report {
	uint64_t records; /* folded */
	uint64_t filtered; /* of other events */
	char *event; /* the one folded, NULL = none seen */
	char *other; /* the first one left out, NULL = none */
	uint64_t malformed;
	const char *bad_path; /* where the first one is */
	uint64_t bad_line;
	const char *bad_why;
};

struct folding;

/* OPTS and what it points to must outlive *RET. Release with folding_free(). */
int folding_new(const struct folding_opts *opts, struct folding **ret, struct err *e);
void folding_free(struct folding *f); /* NULL is fine */

/* All of IN. */
int folding_run(struct folding *f, struct paragraphs *in, struct err *e);

const struct foldtab *folding_table(const struct folding *f);
const struct folding_report *folding_report(const struct folding *f);

#endif
