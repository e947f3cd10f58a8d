/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bundle - what a maintainer needs to know about a machine, in one archive
 * without secrets.
 *
 * It contains the files that the checks read, filtered by secrets_*(), under
 * their own paths below "bpfcheck-bundle/": unpacked, it is a tree for bpfcheck
 * --root. Its file CONTENTS lists what is included and what is skipped.
 */
#ifndef STACKTOOLS_CHECK_BUNDLE_H
#define STACKTOOLS_CHECK_BUNDLE_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/out.h"

/*
 * secrets - what may leave a machine, of the files that describe it.
 *
 * A file is included only if a rule matches its path: whole, in part, or with
 * some of it replaced. A file without a rule is skipped.
 */

/*
 * Append to RET what may leave the machine of the LEN bytes at TEXT, the content
 * of PATH ("proc/cmdline"). NOTE (CAP bytes) says in words what was dropped or
 * replaced; "" = nothing. False if no rule permits the file.
 */
bool secrets_filter(const char *path, const char *text, size_t len, struct buf *ret, char *note, size_t cap);

/* Names that are replaced wherever they occur in a text. */
struct secrets_names {
	char host[256], user[256], home[512]; /* "" = unknown, or too common a word to replace */
};

/* The names of this machine and of the caller. */
void secrets_names(struct secrets_names *ret);

/*
 * Append TEXT to RET, with the names (as whole words) replaced by HOST, USER and
 * HOME, name and password in a URL by LOGIN, and the digits of container ids in
 * paths by zeroes.
 */
void secrets_scrub(const struct secrets_names *n, const char *text, size_t len, struct buf *ret);

/*
 * tarfile - an archive that tar(1) unpacks, written file by file.
 *
 * Format: ustar, described under pax in POSIX.1-2017. Owner and group are
 * always root and the mode is always 0644.
 */

struct tarfile {
	struct out *o; /* the caller's; out_flush() returns its errors */
	uint64_t time; /* of every file, seconds since 1970 */
};

/* NAME is relative, without ".."; -ENAMETOOLONG above 256 bytes, or if it cannot be split at a slash. */
int tarfile_put(struct tarfile *t, const char *name, const void *bytes, size_t len, struct err *e);
int tarfile_link(struct tarfile *t, const char *name, const char *target, struct err *e); /* symbolic */

/* Write the end of the archive; the last call. */
void tarfile_end(struct tarfile *t);

struct bundle {
	char **paths; /* accessed paths, each once */
	size_t n, cap;
	bool failed; /* no memory: some are missing */
};

/* Record in B, which is zeroed, every path that is accessed under R from now on. */
void bundle_watch(struct bundle *b, struct root *r);
void bundle_free(struct bundle *b);

/* The output of a tool, to be included besides the files; secrets_scrub() is applied to it. */
struct bundle_text {
	const char *name; /* "bpfcheck.json" */
	const char *text;
	size_t len;
};

/*
 * Write FILE, which must not exist, with mode 0600; "-" is standard output. LIST
 * gets a line for each file that is included or skipped. On failure FILE is
 * removed again.
 */
int bundle_write(const struct bundle *b, const struct root *r, const struct bundle_text *texts, size_t n,
	const char *file, struct buf *list, struct err *e);

#endif
