/* SPDX-License-Identifier: GPL-2.0-or-later */
/* missing - the names that debug files would give, counted over frames. */
#ifndef STACKTOOLS_SYMBOLS_MISSING_H
#define STACKTOOLS_SYMBOLS_MISSING_H

#include "symbols/resolve.h"

#define MISSING_FILES_MAX 3
#define MISSING_FRAMES_MIN 10

/*
 * Of the user frames in files, those without a name in files that are stripped, have no debug file,
 * and are where packages install programs and libraries: their distribution has debug files for them.
 */
struct missing_names {
	uint64_t frames; /* in files, with a name or not */
	uint64_t unnamed;
	const char *files[MISSING_FILES_MAX]; /* paths of those with most of these, and how many in each */
	uint64_t unnamed_in[MISSING_FILES_MAX];
	size_t n_files;
};

/* TIMES: how often each frame of R occurs. 0 or -ENOMEM. */
int missing_names_count(const struct cap_reader *c, const struct resolve *r, const uint64_t *times,
	struct missing_names *ret);

/* Are they worth a word: at least 10 frames and one in twenty? */
bool missing_names_many(const struct missing_names *m);

#endif
