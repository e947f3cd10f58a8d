/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bundle - what a maintainer needs to know about a machine, in one archive
 * without secrets.
 *
 * It holds the files that the checks looked at, as far as secrets_*() lets them
 * go, under their own paths below "bpfcheck-bundle/": unpacked, it is a tree
 * for bpfcheck --root. CONTENTS in it says what is there and what is not.
 */
#ifndef STACKTOOLS_CHECK_BUNDLE_H
#define STACKTOOLS_CHECK_BUNDLE_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/out.h"

/*
 * secrets - of the files that describe a machine, what may leave it.
 *
 * A file goes out only by a rule of its own: whole, in part, or with something
 * in another's place. What no rule knows stays.
 */

/*
 * What may go out of the LEN bytes at TEXT, which are PATH's ("proc/cmdline"),
 * into RET; NOTE (CAP bytes) says in words what does not, "" = nothing. False:
 * no rule knows it.
 */
bool secrets_filter(const char *path, const char *text, size_t len, struct buf *ret, char *note, size_t cap);

/* Names that are replaced wherever they stand in a text. */
struct secrets_names {
	char host[256], user[256], home[512]; /* "" = not known, or too common a word */
};

/* Of this machine and the caller. */
void secrets_names(struct secrets_names *ret);

/*
 * TEXT with HOST, USER and HOME in their places, as words, LOGIN for name and
 * password of a URL, and zeroes for the digits of containers' ids in paths.
 */
void secrets_scrub(const struct secrets_names *n, const char *text, size_t len, struct buf *ret);

/*
 * tarfile - an archive that tar(1) unpacks, written file by file.
 *
 * Format: ustar, as POSIX.1-2017 has it under pax. Owner and group are root's
 * and the mode is 0644, whatever they were where the bytes come from.
 */

struct tarfile {
	struct out *o; /* the caller's; its errors are met at out_flush() */
	uint64_t time; /* of every file, seconds since 1970 */
};

/* NAME is relative, without ".."; -ENAMETOOLONG beyond 255 bytes, or where it cannot be cut at a slash. */
int tarfile_put(struct tarfile *t, const char *name, const void *bytes, size_t len, struct err *e);
int tarfile_link(struct tarfile *t, const char *name, const char *target, struct err *e); /* symbolic */

/* Nothing comes after this. */
void tarfile_end(struct tarfile *t);

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
