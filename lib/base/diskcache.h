/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diskcache - a cache of named entries on disk.
 *
 * An entry is written under a temporary name and renamed, so that a reader sees
 * all of it or nothing. It is read into memory (not mapped, because the file
 * might be truncated), and the check of its kind validates it. An entry that is
 * damaged, is not a regular file, belongs to another user or is writable by
 * others is not used; a damaged one of our own is removed. The next put under
 * the same name replaces it.
 *
 * The directory is $STACKTOOLS_CACHE, else /var/cache/stacktools for root, else
 * $XDG_CACHE_HOME/stacktools, else $HOME/.cache/stacktools. It and its missing
 * parents are created with mode 0700. A directory that belongs to another user
 * or is writable by others is not used, nor is a symbolic link.
 * "STACKTOOLS_CACHE=" (empty) turns the cache off. Several processes may share
 * a cache; entries of other kinds are ignored.
 */
#ifndef STACKTOOLS_BASE_DISKCACHE_H
#define STACKTOOLS_BASE_DISKCACHE_H

#include "base/err.h"

#include <limits.h>

#define DISKCACHE_NAME_CAP 256

struct diskcache;

struct diskcache_kind {
	const char *suffix; /* of the names, with the version of the format: "-1.tab" */
	const char *what; /* for messages: "unwind table" */
	/* 0, or -errno with the message if the bytes (aligned to 8) are not valid */
	int (*check)(const uint8_t *bytes, size_t len, struct err *e);
};

/* The path of the cache directory. WHAT is a kind's, for the message. -ENOENT: the cache is turned off. */
int diskcache_place(const char *what, char path[PATH_MAX], struct err *e);

/*
 * Open the cache for at most LIMIT bytes of KIND. On success the caller owns
 * *RET, and KIND must outlive it. -ENOENT if and only if the cache is turned
 * off. After any error (-errno with the message) continue without a cache.
 */
int diskcache_open(const struct diskcache_kind *kind, uint64_t limit, struct diskcache **ret, struct err *e);
void diskcache_close(struct diskcache *c); /* NULL is fine */

/*
 * Read and check the entry NAME into new memory (free it), and mark it as used.
 * -ENOENT if there is none, -EINVAL if it is bad, another -errno such as -ENOMEM
 * if it cannot be read. NAME is lower-case hexadecimal digits and dashes, with
 * a digit first, and the suffix.
 */
int diskcache_get(struct diskcache *c, const char *name, uint8_t **ret, size_t *len, struct err *e);

/*
 * The halves of diskcache_get(), for a process that opens entries for another
 * one, which reads and checks them: a descriptor of the entry NAME, marked as
 * used, or -errno; and its bytes from there. The last removes an entry that was
 * found to be bad.
 */
int diskcache_open_entry(struct diskcache *c, const char *name, struct err *e);
int diskcache_read_entry(
	const struct diskcache_kind *kind, int fd, uint8_t **ret, size_t *len, struct err *e);
void diskcache_remove(struct diskcache *c, const char *name);

/*
 * Store an entry. If the limit is exceeded, removes the least recently used
 * entries, and some more, so that the limit is not reached again at once.
 * Processes that add at the same time may each exceed it by a sixteenth. A
 * failure (disk full) leaves no partial file. -EFBIG if the entry exceeds the
 * limit, -EINVAL for an invalid name.
 */
int diskcache_put(struct diskcache *c, const char *name, const uint8_t *bytes, size_t len, struct err *e);

struct diskcache_stats {
	uint64_t hits, misses; /* of diskcache_get() */
	uint64_t bad; /* entries that diskcache_get() did not use: damaged, or not ours */
	uint64_t puts; /* entries stored */
	uint64_t removed; /* entries removed to enforce the limit */
};

void diskcache_stats(const struct diskcache *c, struct diskcache_stats *ret);

#endif
