/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfmap - the functions that a JIT compiler wrote into /tmp/perf-PID.map.
 *
 * Format: tools/perf/Documentation/jit-interface.txt of Linux: "START SIZE NAME", both numbers in
 * hexadecimal without 0x (HotSpot writes it anyway), the name up to the end of the line. Malformed
 * lines are counted and skipped: a size of 0, a name with a NUL or of more than 64 KiB, an end
 * beyond the address space, and a last line without a newline, which is still being written. Empty
 * lines are ignored. Where entries overlap, the newest (the last) wins: the result is a set of
 * disjoint pieces. The text is untrusted input: names are raw bytes, escape them.
 */
#ifndef STACKTOOLS_SYMBOLS_PERFMAP_H
#define STACKTOOLS_SYMBOLS_PERFMAP_H

#include "base/err.h"

struct perfmap;

struct perfmap_hit {
	uint64_t start, end; /* of the entry, as written */
	uint64_t piece_start, piece_end; /* the part of it around the address that no newer entry covers */
	const char *name; /* owned by the map */
};

#define PERFMAP_BYTES_MAX (UINT64_C(512) << 20)
#define PERFMAP_ENTRIES_MAX (16u << 20)

/*
 * Parse LEN bytes at TEXT. -EFBIG beyond either limit, -ENOMEM. O(n log n). On success *RET is the
 * caller's.
 */
int perfmap_parse(const char *text, size_t len, struct perfmap **ret, struct err *e);

/*
 * Read and parse an open regular file, up to PERFMAP_BYTES_MAX; *SIZE is how much was read, to see
 * later whether the file grew.
 */
int perfmap_load(int fd, struct perfmap **ret, uint64_t *size, struct err *e);
void perfmap_free(struct perfmap *m); /* NULL is fine */

bool perfmap_find(const struct perfmap *m, uint64_t addr, struct perfmap_hit *ret);
size_t perfmap_count(const struct perfmap *m); /* entries */
uint64_t perfmap_bad(const struct perfmap *m); /* malformed lines */

#endif
