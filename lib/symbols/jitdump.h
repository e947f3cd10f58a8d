/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jitdump - what a JIT compiler tells perf in jit-PID.dump: code as it is
 * made, moved and unloaded, with times.
 *
 * Format: tools/perf/Documentation/jitdump-specification.txt of Linux,
 * version 1: a header with magic 0x4A695444 in the writer's byte order, then
 * records of a size each. JIT_CODE_LOAD, _MOVE and _CLOSE are understood, source lines
 * (JIT_CODE_DEBUG_INFO, before the load it belongs to) too; others are stepped over. Times are
 * CLOCK_MONOTONIC, unless the header's flags say that they are a cycle counter's: then they are not used and
 * code is taken to be there all the time. JIT_CODE_CLOSE ends the file. A record that does not make sense is
 * counted and stepped over; a size that leads nowhere ends the reading.
 */
#ifndef STACKTOOLS_SYMBOLS_JITDUMP_H
#define STACKTOOLS_SYMBOLS_JITDUMP_H

#include "base/err.h"

struct jitdump;

struct jitdump_hit {
	uint64_t start, end; /* of the code */
	uint64_t piece_start, piece_end; /* of it, what is around the address for which all of this holds */
	uint64_t from_ns, to_ns; /* when the code was there: until it moved or was overwritten */
	const char *name;
	const char *file; /* source of the address, NULL = not told */
	uint32_t line;
};

#define JITDUMP_BYTES_MAX (UINT64_C(1) << 30)
#define JITDUMP_LOADS_MAX (4u << 20)
#define JITDUMP_CELLS_MAX (UINT64_C(64) << 20) /* overlaps: each end of a range cuts those around it */

/* -EINVAL for what is none; one that ends within a record (still being written) is taken up to there. -EFBIG
 * beyond a limit. */
int jitdump_parse(const void *bytes, size_t len, struct jitdump **ret, struct err *e);
int jitdump_load(int fd, struct jitdump **ret, struct err *e);
void jitdump_free(struct jitdump *j); /* NULL is fine */

/* What was at ADDR at TIME_NS, the newest where several overlap. */
bool jitdump_find(const struct jitdump *j, uint64_t addr, uint64_t time_ns, struct jitdump_hit *ret);

/* All that ever was at ADDR, the newest first: number I (from 0); false where there is none any more. What
 * was overwritten before it was there (from_ns == to_ns) is among it. */
bool jitdump_each(const struct jitdump *j, uint64_t addr, size_t i, struct jitdump_hit *ret);
size_t jitdump_count(const struct jitdump *j);
uint64_t jitdump_bad(const struct jitdump *j); /* records that made no sense */

#endif
