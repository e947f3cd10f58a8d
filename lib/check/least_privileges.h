/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * least_privileges - the table of capabilities for people, for programs
 * and for prove(1).
 */
#ifndef STACKTOOLS_CHECK_LEAST_PRIVILEGES_H
#define STACKTOOLS_CHECK_LEAST_PRIVILEGES_H

#include "base/base.h"
#include "base/out.h"
#include "base/tap.h"
#include "check/finding.h"
#include "check/privilege_steps.h"
#include "system/privileges.h"

/*
 * captrials - steps tried with sets of capabilities, as root and as an
 * ordinary user, and what came of it, remembered.
 *
 * Several children work side by side, each on processes of its own
 * (check/privilege_steps.h). What was tried once is not tried again.
 */

#define CAPTRIALS_USERS 2
#define CAPTRIALS_SLOTS 4

enum capcell_state {
	CAPCELL_UNKNOWN, /* not asked for */
	CAPCELL_WORKS,
	CAPCELL_REFUSED, /* EPERM or EACCES */
	CAPCELL_FAILED, /* for another reason, which may have privilege behind it */
	CAPCELL_NOT_GRANTED, /* this process lacks a member of the set itself */
	CAPCELL_NOT_TRIED,
};

struct capcell {
	uint8_t state; /* enum capcell_state */
	int16_t code; /* -errno where it did not work; -ETIMEDOUT where it was not over in time */
};

/* A set with which steps were tried. */
struct capcolumn {
	uint64_t caps;
	struct capcell cells[CAPSTEPS_MAX]; /* by number of step */
};

struct captrials_user {
	const char *name; /* "root", "ordinary" */
	uid_t uid;
	char why_not[256]; /* nothing could be tried as this user; "" = it could */
	struct capcolumn *columns; /* in the order in which they were asked for */
	size_t n, cap;
	char why[CAPSTEPS_MAX][160]; /* how it failed with everything that is granted */
};

struct captrials {
	uint64_t granted; /* what this process could hand out */
	struct capsteps steps;
	struct captrials_user users[CAPTRIALS_USERS]; /* root, then the ordinary one */
	struct capworld worlds[CAPTRIALS_SLOTS];
	size_t n_worlds;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC: what is asked for later is not tried */
	char left_out[256]; /* why steps that read kernel memory are not tried; "" = they are */
	bool late; /* the time was not enough for everything: what is least may be less */
};

/* Whatever comes of it, release T with captrials_close(). */
int captrials_open(unsigned int limit_ms, struct captrials *t, struct err *e);
void captrials_close(struct captrials *t); /* a zeroed one is fine */

/* Every step with each of the N sets, as every user. */
int captrials_all(struct captrials *t, const uint64_t *sets, size_t n, struct err *e);

/*
 * Do all N steps of WHICH, by number, work for USER with exactly CAPS? What is
 * not known is tried.
 */
bool captrials_ask(struct captrials *t, size_t user, uint64_t caps, const uint16_t *which, size_t n);

/* What came of one; CAPCELL_UNKNOWN where it was not asked for. */
struct capcell captrials_cell(const struct captrials *t, size_t user, uint64_t caps, size_t step);

/*
 * capsets - the capabilities that the tools can use, and the sets of them that
 * are tried, in order of power.
 *
 * Sets are bit masks, 1 << CAP_x. Source: capabilities(7).
 */

#define CAPSETS_CAPS 8
#define CAPSETS_MAX 24

/* A column of the table. */
struct capset {
	uint64_t caps;
	const char *name; /* "none", "CAP_BPF", "both and CAP_SYSLOG", ... */
	char head[2]; /* over the column, two characters */
};

/* One of the capabilities that a column stands for. */
struct capsets_cap {
	int cap;
	char letter;
};

/* The capabilities: the weakest first. */
const struct capsets_cap *capsets_caps(void);

/*
 * The sets, the weakest first: none, each capability that is no substitute
 * for others, {CAP_BPF, CAP_PERFMON} and with each of them; then those with
 * CAP_SYS_ADMIN; at the end ALL, which is what this process may hand out.
 * Returns how many.
 */
size_t capsets_list(uint64_t all, struct capset list[CAPSETS_MAX]);

/* The order in which a search takes capabilities away: CAPSETS_CAPS of them, the most powerful first. */
const int *capsets_order(void);

/* The names of SET, "CAP_BPF, CAP_PERFMON"; "none" for the empty one. Returns BUF. */
const char *capsets_names(uint64_t set, char *buf, size_t cap);

/* The same in letters, "BP"; "-" for none, '#' for those without a letter. Returns BUF. */
const char *capsets_letters(uint64_t set, char *buf, size_t cap);

/*
 * capneeds - which steps (check/privilege_steps.h) each tool takes: what it cannot do
 * without, and what it does worse without. This is the one place that says so.
 */

struct capneed {
	enum finding_tool tool;
	const char *step; /* the id of one, or "GROUP.*" */
	const char *gain; /* what the tool does with it, in the third person; NULL = it cannot do without */
};

/* All of them, *N. */
const struct capneed *capneeds_list(size_t *n);

/* Is ID the step, or one of the steps, that C is about? */
bool capneed_is(const struct capneed *c, const char *id);

/*
 * capminimal - a smallest set of capabilities with which something works,
 * found by trying.
 *
 * Sets are bit masks, 1 << CAP_x. "Smallest" means that nothing can be taken
 * away: there may be other such sets, of other capabilities. Which one is
 * found follows from the order in which capabilities are taken away.
 */

/* Does it work with exactly SET? Asked for the same set more than once. */
typedef bool (*capminimal_fn)(void *ctx, uint64_t set);

/*
 * Take away from FROM what is not needed: first, at one go if that can be,
 * all that is not among the N of ORDER, then those of ORDER one by one, the
 * first first; KEEP stays. False when it does not work with FROM. What *RET
 * gets was tried and worked, and each set that lacks one more was tried and
 * did not.
 */
bool capminimal_find(uint64_t from, uint64_t keep, const int *order, size_t n, capminimal_fn works, void *ctx,
	uint64_t *ret);

/*
 * captable - which capabilities every step and every tool takes on this
 * machine, by trying: as root, and as an ordinary user.
 *
 * Each step (check/privilege_steps.h) is done with each set (capsets_*()) that this process
 * can hand out, by a child that has nothing else. The minimal set of a step or
 * of a tool is searched by further attempts; every statement here was tried.
 * What could not be tried says so, and is in no statement.
 */

#define CAPTABLE_REASONS 16

/* The least that does; FOUND false: nothing that was tried does. */
struct capleast {
	bool found;
	uint64_t caps;
};

struct capreason {
	int cap;
	char why[512];
};

struct captable_tool {
	struct capleast required; /* with these it does its job */
	struct capreason reasons[CAPTABLE_REASONS]; /* for each member of `required` */
	size_t n_reasons;
	struct capreason useful[CAPTABLE_REASONS]; /* for each of the others that it does more with */
	size_t n_useful;
	char missing[512]; /* what it lacks with everything that is granted here, and why; "" = nothing */
	bool refused; /* of those, one for lack of privilege */
};

struct captable {
	int tool; /* the only one that it is about; -1 = every tool */
	struct captrials trials;
	struct capset sets[CAPSETS_MAX]; /* the first columns of each user's trials */
	size_t n_sets;
	struct capleast least[CAPTRIALS_USERS][CAPSTEPS_MAX]; /* by number of step */
	struct captable_tool tools[CAPTRIALS_USERS][TOOL_COUNT];
};

/*
 * Try everything that TOOL (an enum finding_tool) takes, or with -1 whatever
 * there is to try, in about LIMIT_MS at most: what is left by then was not
 * tried. Nothing of it outlives the call. On success *RET is the caller's.
 */
int captable_run(int tool, unsigned int limit_ms, struct captable **ret, struct err *e);
void captable_free(struct captable *t); /* NULL is fine */

/*
 * For the exit status: 0 when the sets of each tool were found, 1 when
 * something is left open, 2 when nothing could be tried.
 */
int captable_verdict(const struct captable *t);

enum capreport_style {
	CAPREPORT_TEXT, /* the table, its legend, and what each tool takes; 100 columns at most */
	CAPREPORT_VERBOSE, /* and why steps fail with everything that is granted */
	CAPREPORT_QUIET, /* what each tool takes, a line each */
};

void capreport_text(const struct captable *t, enum capreport_style style, struct out *o);

/* One object, as docs/bpfcheck.1 describes it; STATUS is the exit status. */
void capreport_json(const struct captable *t, int status, struct out *o);

/*
 * A test for each step: passed when a set was found with which it works, failed
 * when there is none and a tool cannot do without, else skipped with the reason.
 */
void capreport_tap(const struct captable *t, struct tap *tap);

#endif
