/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cache - which answers of sym_lookup() are kept on disk (sym_cache_*()), and under which key.
 *
 * Kept are answers with inlined calls or lines, for files with a build ID that have split debug
 * information, or at least SYM_STORE_BYTES_MIN of debug information: below that, reading a file
 * takes no longer than looking for a cached answer. The key covers all files that the answer was
 * made of, the options and SYM_LOOKUP_VERSION. A file that changed after sym_store_open() has no
 * key, because it may change again while it is read.
 */
#ifndef STACKTOOLS_SYMBOLS_CACHE_H
#define STACKTOOLS_SYMBOLS_CACHE_H

#include "base/diskcache.h"
#include "capture/types.h"
#include "symbols/answer.h"
#include "symbols/lookup.h"
#include "symbols/pool.h"

/*
 * sym_cache - answers about a file's addresses (symbols/answer.h), kept on disk.
 *
 * It does not keep symbol indexes: one pass over a symbol table (elf/symbols.h) costs less than
 * reading and checking an index. Reading debug information takes long. An answer has its result:
 * names, calls and lines of the addresses of one capture, mostly some kilobytes.
 *
 * An answer belongs to all files that it was made of, each identified by device, inode, size and
 * times (no one can set a file's ctime), to the build ID of the mapped file and to the options. The
 * entry holds all of these and a checksum. It serves every request whose addresses it has, so
 * reading a capture again costs no more. Answers that could improve are not kept: those with a
 * missing file, and those that ran into a limit. For the directory and its permissions, see
 * diskcache.h.
 */

#define SYM_CACHE_BYTES_DEFAULT (UINT64_C(64) << 20)

struct sym_cache;

/* A file that an answer was made of. A missing file is all zero, and is part of the key, too. */
struct sym_cache_file {
	uint64_t dev, inode, size, mtime_ns, ctime_ns;
};

struct sym_cache_key {
	struct cap_build_id id; /* of the mapped file; with length 0 nothing is cached */
	const struct sym_cache_file *files; /* in an order that the caller chooses */
	size_t n_files; /* 1 to SYM_CACHE_FILES_MAX, else nothing is kept */
	uint64_t options; /* the caller's bits: everything else that changes answers */
};

/* As diskcache_open(). */
int sym_cache_open(uint64_t limit, struct sym_cache **ret, struct err *e);
void sym_cache_close(struct sym_cache *c); /* NULL is fine */

/*
 * Get an answer for KEY that has all of VADDRS, checked, with *VIEW on it; free *RET. -ENOENT if
 * there is none, -EINVAL if there was a damaged one.
 */
int sym_cache_get(struct sym_cache *c, const struct sym_cache_key *key, const uint64_t *vaddrs, size_t n,
	uint8_t **ret, struct sym_answer *view, struct err *e);

/*
 * Store an answer, replacing an earlier one. 1 if it was stored, 0 if it is not to be kept; -errno
 * as diskcache_put().
 */
int sym_cache_put(struct sym_cache *c, const struct sym_cache_key *key, const uint8_t *bytes, size_t len,
	struct err *e);

void sym_cache_stats(const struct sym_cache *c, struct diskcache_stats *ret);

#define SYM_STORE_BYTES_MIN (UINT64_C(256) << 10)

struct sym_store;

struct sym_store_stats {
	uint64_t hits, misses, kept;
	uint64_t bad; /* entries that were damaged, or not ours */
};

/*
 * As diskcache_open(): on success *RET is the caller's. -ENOENT if the cache is turned off;
 * otherwise -errno with the message. The caller continues without a cache.
 */
int sym_store_open(struct sym_store **ret, struct err *e);
void sym_store_close(struct sym_store *k); /* NULL is fine */

/*
 * Get the cached answer for IN, with *VIEW on it; free *RET. It may have more addresses than
 * requested, and its statistics are those of the run that made it. False if there is none.
 */
bool sym_store_get(
	struct sym_store *k, const struct sym_lookup_input *in, uint8_t **ret, struct sym_answer *view);

/* Store the answer for IN if it should be kept. A failure only loses the cached copy. */
void sym_store_put(struct sym_store *k, const struct sym_lookup_input *in, const uint8_t *bytes, size_t len);

void sym_store_stats(const struct sym_store *k, struct sym_store_stats *ret);

/*
 * sym_schedule - sym_reader_run() with limits that all processes share, for the jobs without a
 * cached answer (sym_store_*()).
 */

struct sym_schedule {
	unsigned int jobs; /* processes at the same time; 0 = one for each CPU that is online */
	uint64_t memory_bytes; /* of all of them together; 0 = 2 GiB */
	unsigned int seconds; /* for each job; 0 = 60 */
	struct sym_store *keep; /* NULL = no cache: read everything */
	void (*done)(void *ctx, struct sym_reader_job *job); /* called when a job ends; may be NULL */
	void (*tick)(void *ctx); /* as in symbols/pool.h */
	void *ctx;
};

/*
 * Run JOBS and reorder them. Each job holds its own result. A job with a cached answer took no time
 * (ns is 0) and may have more addresses than requested.
 */
void sym_schedule_run(const struct sym_schedule *r, struct sym_reader_job *jobs, size_t n);

#endif
