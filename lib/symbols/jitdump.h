/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jitdump - what a JIT compiler tells perf in jit-PID.dump: code as it is
 * made, moved and unloaded, with times. Floor 4.
 *
 * Format: tools/perf/Documentation/jitdump-specification.txt of Linux,
 * version 1: a header with magic 0x4A695444 in the writer's byte order, then
 * records of a size each. JIT_CODE_LOAD, _MOVE and _CLOSE are understood, source lines
 * (JIT_CODE_DEBUG_INFO, before the load it belongs to) too; others are stepped over. Times are
 * CLOCK_MONOTONIC, unless the header's flags say that they are a cycle counter's: then they are not used and
 * code is taken to be there all the time.
 */
#ifndef STACKTOOLS_JITDUMP_H
#define STACKTOOLS_JITDUMP_H

#include "err.h"

struct jitdump;

struct jitdump_hit {
	uint64_t start, end;
	uint64_t from_ns, to_ns; /* when the code was there */
	const char *name;
	const char *file; /* source, NULL = not told */
	uint32_t line;
};

#define JITDUMP_BYTES_MAX (UINT64_C(1) << 30)

/* -EINVAL for what is none; one that ends within a record (still being written) is taken up to there. */
int jitdump_parse(const void *bytes, size_t len, struct jitdump **ret, struct err *e);
int jitdump_load(int fd, struct jitdump **ret, struct err *e);
void jitdump_free(struct jitdump *j); /* NULL is fine */

/* What was at ADDR at TIME_NS, the newest where several overlap. */
bool jitdump_find(const struct jitdump *j, uint64_t addr, uint64_t time_ns, struct jitdump_hit *ret);
size_t jitdump_count(const struct jitdump *j);
uint64_t jitdump_bad(const struct jitdump *j); /* records that made no sense */

#endif
