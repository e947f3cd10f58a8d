/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symcache - answers about a file's addresses (symanswer.h), kept on disk.
 *
 * Not indexes of symbols: one pass over a symbol table (elfmatch.h) costs less
 * than to read and check an index of it. What takes long is debug information,
 * of which an answer is the essence: names, calls and lines of the addresses of
 * one capture, mostly some kilobytes.
 *
 * An answer belongs to all files that it was made of, each by device, inode,
 * size and times (nobody can set a file's ctime), to the build ID of the mapped one and to the
 * options. The entry holds all of that, and a checksum. It serves every question whose
 * addresses it has, so that a capture that is read again costs no more.
 * Answers that could become better are not kept: those that lack a file, or
 * ran into a limit. Where they are and who may write them: diskcache.h.
 */
#ifndef STACKTOOLS_SYMCACHE_H
#define STACKTOOLS_SYMCACHE_H

#include "base/diskcache.h"
#include "capture/types.h"
#include "symbols/symanswer.h"

#define SYMCACHE_BYTES_DEFAULT (UINT64_C(64) << 20)
#define SYMCACHE_FILES_MAX 64

struct symcache;

/* A file that an answer was made of; one that is not there is all zero, and that counts too. */
struct symcache_file {
	uint64_t dev, inode, size, mtime_ns, ctime_ns;
};

/* The identity of an open descriptor. -errno as fstat(2). */
int symcache_identify(int fd, struct symcache_file *ret);

struct symcache_key {
	struct cap_build_id id; /* of the mapped file; one of length 0 is in no cache */
	const struct symcache_file *files; /* in an order of the caller's own */
	size_t n_files; /* 1 to SYMCACHE_FILES_MAX, else nothing is kept */
	uint64_t options; /* whatever changes answers: the caller's bits */
};

/* As diskcache_open(). */
int symcache_open(uint64_t limit, struct symcache **ret, struct err *e);
void symcache_close(struct symcache *c); /* NULL is fine */

/*
 * An answer of KEY that has all of VADDRS, into fresh memory *RET (free it),
 * checked and viewed as *VIEW. -ENOENT when there is none, -EINVAL when there was a bad one.
 */
int symcache_get(struct symcache *c, const struct symcache_key *key, const uint64_t *vaddrs, size_t n,
	uint8_t **ret, struct symanswer *view, struct err *e);

/*
 * Keep an answer in place of the one before. 1 when it is kept, 0 when it is
 * none to keep; -errno as diskcache_put().
 */
int symcache_put(
	struct symcache *c, const struct symcache_key *key, const uint8_t *bytes, size_t len, struct err *e);

void symcache_stats(const struct symcache *c, struct diskcache_stats *ret);

#endif
