/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diskcache - bytes kept on disk under a name.
 *
 * Written under another name and renamed, so that a reader sees all or
 * nothing; read into memory (never mapped: the entry might be truncated) and
 * checked by whoever knows what they are. An entry that is damaged, is no
 * regular file, belongs to another user or can be written by others is not
 * used; a damaged one of our own is removed. The next one that is kept takes the
 * place of either.
 *
 * The directory: $STACKTOOLS_CACHE, else /var/cache/stacktools for root, else
 * $XDG_CACHE_HOME/stacktools, else $HOME/.cache/stacktools. It is made with
 * mode 0700, as are the directories above it that are missing; one that
 * belongs to another user or that others can write to is not used, nor is a
 * symbolic link. "STACKTOOLS_CACHE=" (empty) turns the cache off. Several
 * processes may share it; entries of other kinds are none of ours.
 */
#ifndef STACKTOOLS_BASE_DISKCACHE_H
#define STACKTOOLS_BASE_DISKCACHE_H

#include "base/err.h"

#include <limits.h>

#define DISKCACHE_NAME_CAP 256

struct diskcache;

struct diskcache_kind {
	const char *suffix; /* "-1.tab": of the names, with the version of the format */
	const char *what; /* "unwind table": for messages */
	/* 0, or -errno with the message for bytes (aligned to 8) that nobody should use */
	int (*check)(const uint8_t *bytes, size_t len, struct err *e);
};

/*
 * Open the cache, at most LIMIT bytes of KIND in it. On success *RET is the
 * caller's; KIND must stay. -ENOENT when it is turned off, and only then; else
 * -errno and the message: the caller goes on without a cache.
 */
/* Where it would be; WHAT is kept there, for the message. -ENOENT: it is turned off. */
int diskcache_place(const char *what, char path[PATH_MAX], struct err *e);

int diskcache_open(const struct diskcache_kind *kind, uint64_t limit, struct diskcache **ret, struct err *e);
void diskcache_close(struct diskcache *c); /* NULL is fine */

/*
 * The entry NAME in fresh memory (free it), checked. Marks it as used.
 * -ENOENT when there is none, -EINVAL when there was a bad one; -ENOMEM and the
 * like when it could not be read. NAME is lower-case hexadecimal digits and
 * dashes, digits first, and the suffix.
 */
int diskcache_get(struct diskcache *c, const char *name, uint8_t **ret, size_t *len, struct err *e);

/*
 * Keep bytes; what was used longest ago goes while the limit is exceeded,
 * and some more, so that it is not met again at once. Processes that add at
 * the same time may exceed it by a sixteenth each. A failure (disk full)
 * leaves no partial file. -EFBIG beyond the limit, -EINVAL for another name.
 */
int diskcache_put(struct diskcache *c, const char *name, const uint8_t *bytes, size_t len, struct err *e);

struct diskcache_stats {
	uint64_t hits, misses; /* of get */
	uint64_t bad; /* entries that get did not use: damaged, or not ours */
	uint64_t puts; /* entries kept */
	uint64_t removed; /* entries that had to go, by the limit */
};

void diskcache_stats(const struct diskcache *c, struct diskcache_stats *ret);

#endif
