/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tabcache - unwind tables kept on disk, by file and build ID.
 *
 * One entry a table, named by the build ID and by the identity of the file
 * that the table was made of: anybody can make a file that claims the build ID
 * of libc, and its table must not be used for another file. Where they are,
 * who may write them and what becomes of damaged ones: diskcache.h; a table is
 * checked by unwindtab_view().
 */
#ifndef STACKTOOLS_TABCACHE_H
#define STACKTOOLS_TABCACHE_H

#include "base/diskcache.h"
#include "capture/types.h"

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

void tabcache_stats(const struct tabcache *c, struct diskcache_stats *ret);

#endif
