/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cache - which answers of sym_lookup() are worth keeping on disk (symcache_*()),
 * and whose they are.
 *
 * Those of files with debug information of SYM_STORE_BYTES_MIN or more, where inlined calls or
 * lines are asked for: below that, reading takes no longer than looking for what is kept.
 * The key is of all files that the answer is made of, of what is asked for, and
 * of SYM_LOOKUP_VERSION. A file that changed since symkeep was opened has none, for
 * it may change again while it is read.
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
 * Not indexes of symbols: one pass over a symbol table (elf/symbols.h) costs less
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

#define SYM_CACHE_BYTES_DEFAULT (UINT64_C(64) << 20)

struct sym_cache;

/* A file that an answer was made of; one that is not there is all zero, and that counts too. */
struct sym_cache_file {
	uint64_t dev, inode, size, mtime_ns, ctime_ns;
};

struct sym_cache_key {
	struct cap_build_id id; /* of the mapped file; one of length 0 is in no cache */
	const struct sym_cache_file *files; /* in an order of the caller's own */
	size_t n_files; /* 1 to SYM_CACHE_FILES_MAX, else nothing is kept */
	uint64_t options; /* whatever changes answers: the caller's bits */
};

/* As diskcache_open(). */
int sym_cache_open(uint64_t limit, struct sym_cache **ret, struct err *e);
void sym_cache_close(struct sym_cache *c); /* NULL is fine */

/*
 * An answer of KEY that has all of VADDRS, into fresh memory *RET (free it),
 * checked and viewed as *VIEW. -ENOENT when there is none, -EINVAL when there was a bad one.
 */
int sym_cache_get(struct sym_cache *c, const struct sym_cache_key *key, const uint64_t *vaddrs, size_t n,
	uint8_t **ret, struct sym_answer *view, struct err *e);

/*
 * Keep an answer in place of the one before. 1 when it is kept, 0 when it is
 * none to keep; -errno as diskcache_put().
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
 * As diskcache_open(): on success *RET is the caller's. -ENOENT where the cache is
 * turned off; else -errno and the message: the caller goes on without.
 */
int sym_store_open(struct sym_store **ret, struct err *e);
void sym_store_close(struct sym_store *k); /* NULL is fine */

/*
 * The answer to IN if it is kept, in fresh memory (*RET, free it), with *VIEW of it. It may
 * have more addresses than were asked for; the work that it tells of was done by another. False: there is
 * none.
 */
bool sym_store_get(
	struct sym_store *k, const struct sym_lookup_input *in, uint8_t **ret, struct sym_answer *view);

/* Keep the answer to IN, if it is one to keep. A failure costs only that. */
void sym_store_put(struct sym_store *k, const struct sym_lookup_input *in, const uint8_t *bytes, size_t len);

void sym_store_stats(const struct sym_store *k, struct sym_store_stats *ret);

/*
 * sym_schedule - sym_reader_run() within bounds that all processes share, and only for
 * what no earlier run has kept (symkeep_*()).
 */

struct sym_schedule {
	unsigned int jobs; /* processes at the same time; 0 = one for each CPU that is online */
	uint64_t memory_bytes; /* of all of them together; 0 = 2 GiB */
	unsigned int seconds; /* for each job; 0 = 60 */
	struct sym_store *keep; /* NULL = everything is read */
	void (*done)(void *ctx, struct sym_reader_job *job); /* for each as it ends; may be NULL */
	void (*tick)(void *ctx); /* as in symbols/pool.h */
	void *ctx;
};

/*
 * Run JOBS, whose order may be another one afterwards. Each job's outcome is in it: one that was
 * kept took no time (ns is 0) and may have more addresses than were asked for.
 */
void sym_schedule_run(const struct sym_schedule *r, struct sym_reader_job *jobs, size_t n);

#endif
