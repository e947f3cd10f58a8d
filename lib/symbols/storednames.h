/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * storednames - the names that a capture itself holds of a file's addresses,
 * in the form of an answer.
 *
 * For files that are not to be had. What the recorder wrote is anybody's by now: what
 * no recorder writes is left out, and the answer passes symanswer_view().
 */
#ifndef STACKTOOLS_STOREDNAMES_H
#define STACKTOOLS_STOREDNAMES_H

#include "capture/reader.h"
#include "symbols/symanswer.h"

bool storednames_any(const struct capread *c, uint32_t file);

/* What is wanted of what is stored. */
struct storednames_opts {
	bool demangle; /* else names are shown as the tables had them */
	bool inlines; /* else a function has the place of the innermost call, and no calls */
	bool lines;
};

/*
 * All that C holds of FILE (a cap_file id), where `vaddr` and `start` are offsets into the file. Without
 * inlines and lines nothing counts as told by debug information. 0 with fresh
 * memory in *RET (an answer without addresses where nothing is stored), or -ENOMEM.
 */
int storednames_answer(const struct capread *c, uint32_t file, const struct storednames_opts *o,
	uint8_t **ret, size_t *len, struct err *e);

#endif
