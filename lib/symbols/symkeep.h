/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symkeep - which answers of symlook() are worth keeping on disk (symcache.h),
 * and whose they are.
 *
 * Those of files with debug information of SYMKEEP_BYTES_MIN or more, where inlined calls or
 * lines are asked for: below that, reading takes no longer than looking for what is kept.
 * The key is of all files that the answer is made of, of what is asked for, and
 * of SYMLOOK_VERSION. A file that changed since symkeep was opened has none, for
 * it may change again while it is read.
 */
#ifndef STACKTOOLS_SYMKEEP_H
#define STACKTOOLS_SYMKEEP_H

#include "symbols/symlook.h"

#define SYMKEEP_BYTES_MIN (UINT64_C(256) << 10)

struct symkeep;

struct symkeep_stats {
	uint64_t hits, misses, kept;
	uint64_t bad; /* entries that were damaged, or not ours */
};

/*
 * As diskcache_open(): on success *RET is the caller's. -ENOENT where the cache is
 * turned off; else -errno and the story: the caller goes on without.
 */
int symkeep_open(struct symkeep **ret, struct err *e);
void symkeep_close(struct symkeep *k); /* NULL is fine */

/*
 * The answer to IN if it is kept, in fresh memory (*RET, free it), with *VIEW of it. It may
 * have more addresses than were asked for; the work that it tells of was done by another. False: there is
 * none.
 */
bool symkeep_get(struct symkeep *k, const struct symlook_input *in, uint8_t **ret, struct symanswer *view);

/* Keep the answer to IN, if it is one to keep. A failure costs only that. */
void symkeep_put(struct symkeep *k, const struct symlook_input *in, const uint8_t *bytes, size_t len);

void symkeep_stats(const struct symkeep *k, struct symkeep_stats *ret);

#endif
