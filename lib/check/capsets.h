/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capsets - the capabilities that the tools can use, and the sets of them that
 * are tried, in order of power.
 *
 * Sets are bit masks, 1 << CAP_x. Source: capabilities(7).
 */
#ifndef STACKTOOLS_CAPSETS_H
#define STACKTOOLS_CAPSETS_H

#include "system/privileges.h"

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

#endif
