/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tabcache - unwind tables kept on disk, by file and build ID. Floor 4.
 *
 * One entry a table, named by the build ID and by the identity of the file
 * that the table was made of: anybody can make a file that claims the build ID
 * of libc, and its table must not be used for another file. Written under
 * another name and renamed, so that a reader sees all or nothing; read into
 * memory (never mapped: the entry might be truncated) and checked by
 * unwindtab_view(). An entry that is damaged, is no regular file, belongs to
 * another user or can be written by others is not used; a damaged one of our
 * own is removed. The next table that is kept takes the place of either.
 *
 * The directory: $STACKTOOLS_CACHE, else /var/cache/stacktools for root, else
 * $XDG_CACHE_HOME/stacktools, else $HOME/.cache/stacktools. It is made with
 * mode 0700, as are the directories above it that are missing; one that
 * belongs to another user or that others can write to is not used, nor is a
 * symbolic link. "STACKTOOLS_CACHE=" (empty) turns the cache off. Several
 * recorders may share it.
 */
#ifndef STACKTOOLS_TABCACHE_H
#define STACKTOOLS_TABCACHE_H

#include "capture.h"
#include "err.h"

#define TABCACHE_BYTES_DEFAULT (UINT64_C(256) << 20)

struct tabcache;

/* All of it has to be the same again. Nobody can set a file's ctime, so a file that was changed is another
 * one. */
struct tabcache_key {
	struct cap_build_id id; /* one of length 0 is in no cache */
	uint64_t dev, inode, size, mtime_ns, ctime_ns;
};

/*
 * Open the cache, at most LIMIT bytes of it. On success *RET is the caller's.
 * -ENOENT when it is turned off, and only then; else -errno and the story: the
 * caller goes on without a cache.
 */
int tabcache_open(uint64_t limit, struct tabcache **ret, struct err *e);
void tabcache_close(struct tabcache *c); /* NULL is fine */

/*
 * The table of KEY in fresh memory (free it), aligned to 8 and checked. Marks
 * it as used. -ENOENT when there is none, -EINVAL when there was a bad one;
 * -ENOMEM and the like when it could not be read.
 */
int tabcache_get(
	struct tabcache *c, const struct tabcache_key *key, uint8_t **ret, size_t *len, struct err *e);

/*
 * Keep a table; what was used longest ago goes while the limit is exceeded,
 * and some more, so that it is not met again at once. Recorders that add at
 * the same time may exceed it by a sixteenth each. A failure (disk full)
 * leaves no partial file. -EFBIG for a table beyond the limit, -EINVAL for a
 * key without a build ID.
 */
int tabcache_put(
	struct tabcache *c, const struct tabcache_key *key, const uint8_t *bytes, size_t len, struct err *e);

struct tabcache_stats {
	uint64_t hits, misses; /* of get */
	uint64_t bad; /* entries that get did not use: damaged, or not ours */
	uint64_t puts; /* tables kept */
	uint64_t removed; /* entries that had to go, by the limit */
};

void tabcache_stats(const struct tabcache *c, struct tabcache_stats *ret);

#endif
