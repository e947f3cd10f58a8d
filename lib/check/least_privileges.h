/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * least_privileges - which capabilities the tools need, found by trying, and the
 * reports of it for people, for programs and for prove(1).
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
 * ordinary user, and their results.
 *
 * Several children work in parallel, each on its own target processes
 * (check/privilege_steps.h). Nothing is tried twice.
 */

#define PRIV_TRIALS_USERS 2
#define PRIV_TRIALS_SLOTS 4

enum priv_cell_state {
	PRIV_CELL_UNKNOWN, /* not requested */
	PRIV_CELL_WORKS,
	PRIV_CELL_REFUSED, /* EPERM or EACCES */
	PRIV_CELL_FAILED, /* with another error, which may still be due to a missing privilege */
	PRIV_CELL_NOT_GRANTED, /* this process lacks a capability of the set */
	PRIV_CELL_NOT_TRIED,
};

struct priv_cell {
	uint8_t state; /* enum priv_cell_state */
	int16_t code; /* -errno if it did not work; -ETIMEDOUT if its time was over */
};

/* A set of capabilities, and the results of the steps with it. */
struct priv_column {
	uint64_t caps;
	struct priv_cell cells[PRIV_STEP_MAX]; /* by step number */
};

struct priv_trials_user {
	const char *name; /* "root", "ordinary" */
	uid_t uid;
	char why_not[256]; /* why nothing can be tried as this user; "" = it can */
	struct priv_column *columns; /* in the order of the requests */
	size_t n, cap;
	char why[PRIV_STEP_MAX][160]; /* by step number: its error with all granted capabilities */
};

struct priv_trials {
	uint64_t granted; /* the capabilities that this process can give to a child */
	struct priv_step_list steps;
	struct priv_trials_user users[PRIV_TRIALS_USERS]; /* root, then the ordinary user */
	struct priv_targets worlds[PRIV_TRIALS_SLOTS];
	size_t n_worlds;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC: nothing is tried after it */
	char untried_why[256]; /* why steps that read kernel memory are skipped; "" = they are not */
	bool late; /* time ran out: smaller sets may work */
};

/* Trials stop after LIMIT_MS. Call priv_trials_close() even on failure. */
int priv_trials_open(unsigned int limit_ms, struct priv_trials *t, struct err *e);
void priv_trials_close(struct priv_trials *t); /* a zeroed one is fine */

/* Try every step with each of the N sets, as every user. */
int priv_trials_all(struct priv_trials *t, const uint64_t *sets, size_t n, struct err *e);

/*
 * Whether all N steps of WHICH, by number, work for USER with exactly CAPS. Tries
 * those that are not known yet. False also if there is no memory.
 */
bool priv_trials_ask(struct priv_trials *t, size_t user, uint64_t caps, const uint16_t *which, size_t n);

/* The result of one step; PRIV_CELL_UNKNOWN if it was not requested. */
struct priv_cell priv_trials_cell(const struct priv_trials *t, size_t user, uint64_t caps, size_t step);

/*
 * priv_set - the capabilities that the tools can use, and the sets of them that
 * are tried, the weakest first.
 *
 * Sets are bit masks, 1 << CAP_x. Source: capabilities(7).
 */

#define PRIV_SET_CAPS 8
#define PRIV_SET_MAX 24

/* A column of the table. */
struct priv_set {
	uint64_t caps;
	const char *name; /* "none", "CAP_BPF", "both and CAP_SYSLOG", ... */
	char head[2]; /* the heading of the column, one character per row */
};

struct priv_set_cap {
	int cap;
	char letter; /* for priv_set_letters() */
};

/* The PRIV_SET_CAPS capabilities, the weakest first. */
const struct priv_set_cap *priv_set_caps(void);

/*
 * The sets, the weakest first: none; each capability but CAP_SYS_ADMIN, which
 * stands in for others; CAP_BPF and CAP_PERFMON, alone and with each of the
 * others; CAP_SYS_ADMIN, alone and with those two; at the end ALL, what this
 * process can give to a child. Returns how many.
 */
size_t priv_set_list(uint64_t all, struct priv_set list[PRIV_SET_MAX]);

/* The order in which a search removes capabilities: PRIV_SET_CAPS of them, the most powerful first. */
const int *priv_set_order(void);

/* The names of SET, "CAP_BPF, CAP_PERFMON"; "none" if it is empty. Returns BUF. */
const char *priv_set_names(uint64_t set, char *buf, size_t cap);

/* The same in letters, "BP"; "-" if it is empty, '#' for all without a letter. Returns BUF. */
const char *priv_set_letters(uint64_t set, char *buf, size_t cap);

/*
 * tool_need - the steps (check/privilege_steps.h) of each tool: those that it
 * requires, and those without which it does less. Only this list says so.
 */

struct tool_need {
	enum finding_tool tool;
	const char *step; /* the id of a step, or "GROUP.*" */
	const char *gain; /* what the tool does with it, in the third person; NULL = required */
};

/* All of them, *N. */
const struct tool_need *tool_need_list(size_t *n);

/* Whether ID is the step, or one of the steps, of C. */
bool tool_need_is(const struct tool_need *c, const char *id);

/*
 * priv_minimal - a minimal set of capabilities with which something works, found
 * by trying.
 *
 * Sets are bit masks, 1 << CAP_x. "Minimal" means that no capability can be
 * removed: there may be other such sets, of other capabilities. The order in
 * which capabilities are removed decides which one is found.
 */

/* Whether it works with exactly SET. May be called more than once for the same set. */
typedef bool (*priv_minimal_fn)(void *ctx, uint64_t set);

/*
 * Remove from FROM what is not needed, but nothing of KEEP: first all that is not
 * among the N of ORDER, at once if possible, else one by one; then those of ORDER
 * one by one, in that order; again until nothing more can be removed. False if it
 * does not work with FROM. *RET was tried and works; every set with one capability
 * less (that is not in KEEP) was tried and does not.
 */
bool priv_minimal_find(uint64_t from, uint64_t keep, const int *order, size_t n, priv_minimal_fn works,
	void *ctx, uint64_t *ret);

/*
 * priv_table - the capabilities that every step and every tool needs on this
 * machine, found by trying: as root, and as an ordinary user.
 *
 * Each step (check/privilege_steps.h) is tried with each set (priv_set_list())
 * that this process can give to a child, which has nothing else. Further attempts
 * search the minimal set of a step or of a tool. Only the results of attempts are
 * reported; what could not be tried is marked as not tried.
 */

#define PRIV_TABLE_REASONS 16

/* A minimal set that works; FOUND false: nothing that was tried works. */
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
	struct priv_reason reasons[PRIV_TABLE_REASONS]; /* for each capability in `required` */
	size_t n_reasons;
	struct priv_reason useful[PRIV_TABLE_REASONS]; /* for each other capability with which it does more */
	size_t n_useful;
	char missing[512]; /* what it cannot do even with all granted capabilities, and why; "" = nothing */
	bool refused; /* some of that was refused or not tried, so a privilege may be missing */
};

struct priv_table {
	int tool; /* the selected tool; -1 = every tool */
	struct priv_trials trials;
	struct priv_set sets[PRIV_SET_MAX]; /* the first columns of each user's trials */
	size_t n_sets;
	struct priv_least least[PRIV_TRIALS_USERS][PRIV_STEP_MAX]; /* by step number */
	struct priv_table_tool tools[PRIV_TRIALS_USERS][TOOL_COUNT];
};

/*
 * Try every step of TOOL (an enum finding_tool), or with -1 every step, for about
 * LIMIT_MS at most: the rest is not tried. All processes that it starts have ended
 * when it returns. On success release *RET with priv_table_free().
 */
int priv_table_run(int tool, unsigned int limit_ms, struct priv_table **ret, struct err *e);
void priv_table_free(struct priv_table *t); /* NULL is fine */

/*
 * The exit status: 0 if the sets of every tool were found, 1 if something remains
 * open, 2 if nothing could be tried.
 */
int priv_table_verdict(const struct priv_table *t);

enum priv_report_style {
	PRIV_REPORT_TEXT, /* the table, its legend, and what each tool needs; at most 100 columns */
	PRIV_REPORT_VERBOSE, /* also why steps fail with all granted capabilities */
	PRIV_REPORT_QUIET, /* what each tool needs, one line each */
};

void priv_report_text(const struct priv_table *t, enum priv_report_style style, struct out *o);

/* One object, as docs/bpfcheck.1 describes it; STATUS is the exit status. */
void priv_report_json(const struct priv_table *t, int status, struct out *o);

/*
 * One test per step: passed if a set was found with which it works for the
 * ordinary user, failed if there is none and a tool requires the step, else skipped
 * with the reason.
 */
void priv_report_tap(const struct priv_table *t, struct tap *tap);

#endif
