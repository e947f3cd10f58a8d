/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * captrials - steps tried with sets of capabilities, as root and as an
 * ordinary user, and what came of it, remembered.
 *
 * Several children work side by side, each on processes of its own
 * (capworld.h). What was tried once is not tried again.
 */
#ifndef STACKTOOLS_CAPTRIALS_H
#define STACKTOOLS_CAPTRIALS_H

#include "check/capsteps.h"

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
void captrials_end(struct captrials *t); /* no more will be tried: the processes end */
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

#endif
