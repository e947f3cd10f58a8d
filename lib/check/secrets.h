/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * secrets - of the files that describe a machine, what may leave it.
 *
 * A file goes out only by a rule of its own: whole, in part, or with something
 * in another's place. What no rule knows stays.
 */
#ifndef STACKTOOLS_SECRETS_H
#define STACKTOOLS_SECRETS_H

#include "base/bytes.h"
#include "base/err.h"

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

/* The name that PATH itself has outside, with such zeroes; BUF of CAP bytes. */
void secrets_path(const char *path, char *buf, size_t cap);

#endif
