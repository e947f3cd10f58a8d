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
 * priv_trials - steps tried with sets of capabilities, as root and as an
 * ordinary user, and what came of it, remembered.
 *
 * Several children work side by side, each on processes of its own
 * (check/privilege_steps.h). What was tried once is not tried again.
 */

#define PRIV_TRIALS_USERS 2
#define PRIV_TRIALS_SLOTS 4

enum priv_cell_state {
	PRIV_CELL_UNKNOWN, /* not asked for */
	PRIV_CELL_WORKS,
	PRIV_CELL_REFUSED, /* EPERM or EACCES */
	PRIV_CELL_FAILED, /* for another reason, which may have privilege behind it */
	PRIV_CELL_NOT_GRANTED, /* this process lacks a member of the set itself */
	PRIV_CELL_NOT_TRIED,
};

struct priv_cell {
	uint8_t state; /* enum priv_cell_state */
	int16_t code; /* -errno where it did not work; -ETIMEDOUT where it was not over in time */
};

/* A set with which steps were tried. */
struct priv_column {
	uint64_t caps;
	struct priv_cell cells[PRIV_STEP_MAX]; /* by number of step */
};

struct priv_trials_user {
	const char *name; /* "root", "ordinary" */
	uid_t uid;
	char why_not[256]; /* nothing could be tried as this user; "" = it could */
	struct priv_column *columns; /* in the order in which they were asked for */
	size_t n, cap;
	char why[PRIV_STEP_MAX][160]; /* how it failed with everything that is granted */
};

struct priv_trials {
	uint64_t granted; /* what this process could hand out */
	struct priv_step_list steps;
	struct priv_trials_user users[PRIV_TRIALS_USERS]; /* root, then the ordinary one */
	struct priv_targets worlds[PRIV_TRIALS_SLOTS];
	size_t n_worlds;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC: what is asked for later is not tried */
	char untried_why[256]; /* why steps that read kernel memory are not tried; "" = they are */
	bool late; /* the time was not enough for everything: what is least may be less */
};

/* Whatever comes of it, release T with priv_trials_close(). */
int priv_trials_open(unsigned int limit_ms, struct priv_trials *t, struct err *e);
void priv_trials_close(struct priv_trials *t); /* a zeroed one is fine */

/* Every step with each of the N sets, as every user. */
int priv_trials_all(struct priv_trials *t, const uint64_t *sets, size_t n, struct err *e);

/*
 * Do all N steps of WHICH, by number, work for USER with exactly CAPS? What is
 * not known is tried.
 */
bool priv_trials_ask(struct priv_trials *t, size_t user, uint64_t caps, const uint16_t *which, size_t n);

/* What came of one; PRIV_CELL_UNKNOWN where it was not asked for. */
struct priv_cell priv_trials_cell(const struct priv_trials *t, size_t user, uint64_t caps, size_t step);

/*
 * priv_set - the capabilities that the tools can use, and the sets of them that
 * are tried, in order of power.
 *
 * Sets are bit masks, 1 << CAP_x. Source: capabilities(7).
 */

#define PRIV_SET_CAPS 8
#define PRIV_SET_MAX 24

/* A column of the table. */
struct priv_set {
	uint64_t caps;
	const char *name; /* "none", "CAP_BPF", "both and CAP_SYSLOG", ... */
	char head[2]; /* over the column, two characters */
};

/* One of the capabilities that a column stands for. */
struct priv_set_cap {
	int cap;
	char letter;
};

/* The capabilities: the weakest first. */
const struct priv_set_cap *priv_set_caps(void);

/*
 * The sets, the weakest first: none, each capability that is no substitute
 * for others, {CAP_BPF, CAP_PERFMON} and with each of them; then those with
 * CAP_SYS_ADMIN; at the end ALL, which is what this process may hand out.
 * Returns how many.
 */
size_t priv_set_list(uint64_t all, struct priv_set list[PRIV_SET_MAX]);

/* The order in which a search takes capabilities away: PRIV_SET_CAPS of them, the most powerful first. */
const int *priv_set_order(void);

/* The names of SET, "CAP_BPF, CAP_PERFMON"; "none" for the empty one. Returns BUF. */
const char *priv_set_names(uint64_t set, char *buf, size_t cap);

/* The same in letters, "BP"; "-" for none, '#' for those without a letter. Returns BUF. */
const char *priv_set_letters(uint64_t set, char *buf, size_t cap);

/*
 * tool_need - which steps (check/privilege_steps.h) each tool takes: what it cannot do
 * without, and what it does worse without. This is the one place that says so.
 */

struct tool_need {
	enum finding_tool tool;
	const char *step; /* the id of one, or "GROUP.*" */
	const char *gain; /* what the tool does with it, in the third person; NULL = it cannot do without */
};

/* All of them, *N. */
const struct tool_need *tool_need_list(size_t *n);

/* Is ID the step, or one of the steps, that C is about? */
bool tool_need_is(const struct tool_need *c, const char *id);

/*
 * priv_minimal - a smallest set of capabilities with which something works,
 * found by trying.
 *
 * Sets are bit masks, 1 << CAP_x. "Smallest" means that nothing can be taken
 * away: there may be other such sets, of other capabilities. Which one is
 * found follows from the order in which capabilities are taken away.
 */

/* Does it work with exactly SET? Asked for the same set more than once. */
typedef bool (*priv_minimal_fn)(void *ctx, uint64_t set);

/*
 * Take away from FROM what is not needed: first, at one go if that can be,
 * all that is not among the N of ORDER, then those of ORDER one by one, the
 * first first; KEEP stays. False when it does not work with FROM. What *RET
 * gets was tried and worked, and each set that lacks one more was tried and
 * did not.
 */
bool priv_minimal_find(uint64_t from, uint64_t keep, const int *order, size_t n, priv_minimal_fn works,
	void *ctx, uint64_t *ret);

/*
 * priv_table - which capabilities every step and every tool takes on this
 * machine, by trying: as root, and as an ordinary user.
 *
 * Each step (check/privilege_steps.h) is done with each set (capsets_*()) that this process
 * can hand out, by a child that has nothing else. The minimal set of a step or
 * of a tool is searched by further attempts; every statement here was tried.
 * What could not be tried says so, and is in no statement.
 */

#define PRIV_TABLE_REASONS 16

/* The least that does; FOUND false: nothing that was tried does. */
struct priv_least {
	bool found;
	uint64_t caps;
};

struct priv_reason {
	int cap;
	char why[512];
};

struct priv_table_tool {
	struct priv_least required; /* with these it does its job */
	struct priv_reason reasons[PRIV_TABLE_REASONS]; /* for each member of `required` */
	size_t n_reasons;
	struct priv_reason useful[PRIV_TABLE_REASONS]; /* for each of the others that it does more with */
	size_t n_useful;
	char missing[512]; /* what it lacks with everything that is granted here, and why; "" = nothing */
	bool refused; /* of those, one for lack of privilege */
};

struct priv_table {
	int tool; /* the only one that it is about; -1 = every tool */
	struct priv_trials trials;
	struct priv_set sets[PRIV_SET_MAX]; /* the first columns of each user's trials */
	size_t n_sets;
	struct priv_least least[PRIV_TRIALS_USERS][PRIV_STEP_MAX]; /* by number of step */
	struct priv_table_tool tools[PRIV_TRIALS_USERS][TOOL_COUNT];
};

/*
 * Try everything that TOOL (an enum finding_tool) takes, or with -1 whatever
 * there is to try, in about LIMIT_MS at most: what is left by then was not
 * tried. Nothing of it outlives the call. On success *RET is the caller's.
 */
int priv_table_run(int tool, unsigned int limit_ms, struct priv_table **ret, struct err *e);
void priv_table_free(struct priv_table *t); /* NULL is fine */

/*
 * For the exit status: 0 when the sets of each tool were found, 1 when
 * something is left open, 2 when nothing could be tried.
 */
int priv_table_verdict(const struct priv_table *t);

enum priv_report_style {
	PRIV_REPORT_TEXT, /* the table, its legend, and what each tool takes; 100 columns at most */
	PRIV_REPORT_VERBOSE, /* and why steps fail with everything that is granted */
	PRIV_REPORT_QUIET, /* what each tool takes, a line each */
};

void priv_report_text(const struct priv_table *t, enum priv_report_style style, struct out *o);

/* One object, as docs/bpfcheck.1 describes it; STATUS is the exit status. */
void priv_report_json(const struct priv_table *t, int status, struct out *o);

/*
 * A test for each step: passed when a set was found with which it works, failed
 * when there is none and a tool cannot do without, else skipped with the reason.
 */
void priv_report_tap(const struct priv_table *t, struct tap *tap);

#endif
