/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jitdump - the code that a JIT compiler reports to perf in jit-PID.dump, as it is made, moved and
 * unloaded, with times.
 *
 * Format: tools/perf/Documentation/jitdump-specification.txt of Linux, version 1: a header with
 * magic 0x4A695444 in the writer's byte order, then records, each with its size. JIT_CODE_LOAD,
 * _MOVE and _CLOSE are read, and so are source lines (JIT_CODE_DEBUG_INFO, which precedes its
 * load); other records are skipped. Times are CLOCK_MONOTONIC. If the header's flags say that they
 * come from a cycle counter, they are ignored and code is assumed to be there all the time.
 * JIT_CODE_CLOSE ends the file. A malformed record is counted and skipped; a record with an invalid
 * size ends the reading.
 */
#ifndef STACKTOOLS_SYMBOLS_JITDUMP_H
#define STACKTOOLS_SYMBOLS_JITDUMP_H

#include "base/err.h"

struct jitdump;

struct jitdump_hit {
	uint64_t start, end; /* of the code */
	uint64_t piece_start, piece_end; /* the part of it around the address to which all of this applies */
	uint64_t from_ns, to_ns; /* when the code was there: until it moved or was overwritten */
	const char *name;
	const char *file; /* source file of the address, NULL = unknown */
	uint32_t line;
};

#define JITDUMP_BYTES_MAX (UINT64_C(1) << 30)
#define JITDUMP_LOADS_MAX (4u << 20)
#define JITDUMP_CELLS_MAX (UINT64_C(64) << 20) /* each end of a range cuts the ranges around it */

/*
 * -EINVAL for a file that is not a jitdump, -EFBIG beyond a limit. A file that ends inside a record
 * (still being written) is read up to that record.
 */
int jitdump_parse(const void *bytes, size_t len, struct jitdump **ret, struct err *e);
int jitdump_load(int fd, struct jitdump **ret, struct err *e);
void jitdump_free(struct jitdump *j); /* NULL is fine */

/* Find the code at ADDR at TIME_NS, the newest if several overlap. */
bool jitdump_find(const struct jitdump *j, uint64_t addr, uint64_t time_ns, struct jitdump_hit *ret);

/*
 * Find number I (from 0) of all code that ever was at ADDR, newest first; false after the last one.
 * This includes code that was overwritten before it was there (from_ns == to_ns).
 */
bool jitdump_each(const struct jitdump *j, uint64_t addr, size_t i, struct jitdump_hit *ret);
size_t jitdump_count(const struct jitdump *j);
uint64_t jitdump_bad(const struct jitdump *j); /* malformed records */

#endif
