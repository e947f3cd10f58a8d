/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bundle - what a maintainer needs to know about a machine, in one archive
 * without secrets.
 *
 * It holds the files that the checks looked at, as far as secrets.h lets them
 * go, under their own paths below "bpfcheck-bundle/": unpacked, it is a tree
 * for bpfcheck --root. CONTENTS in it says what is there and what is not.
 */
#ifndef STACKTOOLS_BUNDLE_H
#define STACKTOOLS_BUNDLE_H

#include "base/bytes.h"
#include "base/fs.h"

struct bundle {
	char **paths; /* that were looked at, each once */
	size_t n, cap;
	bool failed; /* no memory: some are missing */
};

/* From now on B, zeroed before, hears of what is looked at under R. */
void bundle_watch(struct bundle *b, struct root *r);
void bundle_free(struct bundle *b);

/* Besides the files: what a tool printed. Names of host and user are replaced in it. */
struct bundle_text {
	const char *name; /* "bpfcheck.json" */
	const char *text;
	size_t len;
};

/*
 * Write FILE, which must not exist, mode 0600; "-" is standard output. LIST
 * gets a line for each thing that is in it, or was left out. A FILE that could
 * not be written whole is taken away again.
 */
int bundle_write(const struct bundle *b, const struct root *r, const struct bundle_text *texts, size_t n,
	const char *file, struct buf *list, struct err *e);

#endif
