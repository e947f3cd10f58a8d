/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chunks - memory that this process writes and BPF reads: maps of 256 KiB in
 * an array of maps, made as they are needed, and blocks inside them.
 *
 * Chunk 0 does not exist. A chunk is never given back to the kernel before
 * the end; its blocks are used again. A block is a whole number of grains of
 * UNWIND_GRAIN bytes and lies in one chunk, in the first place where it fits.
 *
 * Threads make the chunks and put them into the array. They are usable here
 * once they are made and are in the kernel's sight once they are in the array.
 * The system call that puts them there returns only after a grace period of
 * RCU (5 to 30 ms), for the sake of those who still use what stood there
 * before; nothing did, so nobody waits for the thread unless many do so
 * already. The caller is one thread.
 */
#ifndef STACKTOOLS_CHUNKS_H
#define STACKTOOLS_CHUNKS_H

#include "base/err.h"
#include "system/broker.h"

#include "unwind_abi.h"

#define CHUNKS_GRAINS (UNWIND_CHUNK_BYTES / UNWIND_GRAIN) /* of a chunk */
#define CHUNKS_MAP_HEADER                                                                                    \
	4096 /* bytes of the kernel for each chunk more: in front of values that can be mapped */
#define CHUNKS_GRAINS_OF(bytes) ((uint32_t)(((bytes) + UNWIND_GRAIN - 1) / UNWIND_GRAIN))

struct chunks;

struct chunks_block {
	uint32_t chunk, grain;
	void *p;
};

/*
 * An array of N maps (at least two, for the first is never used; at most
 * 65000), and the thread begins to make FIRST chunks. OPENER (NULL = none) is
 * asked for those that this process may not make. On success *RET is the caller's. The story
 * tells when BPF is not permitted.
 */
int chunks_open(uint32_t n, uint32_t first, struct opener *opener, struct chunks **ret, struct err *e);
void chunks_close(struct chunks *c); /* NULL is fine */
int chunks_fd(const struct chunks *c); /* of the array of maps */

/*
 * Make so many chunks that GRAINS are free, if only in pieces. -ENOSPC when
 * they cannot be; else the kernel's -errno.
 */
int chunks_reserve(struct chunks *c, uint64_t grains, struct err *e);

/* A block of GRAINS (1 to CHUNKS_GRAINS). -ENOSPC when the bound is reached; else the kernel's -errno. */
int chunks_take(struct chunks *c, uint32_t grains, struct chunks_block *ret, struct err *e);
/* What was taken at GRAIN of CHUNK. */
const void *chunks_at(const struct chunks *c, uint32_t chunk, uint32_t grain);

void chunks_give(struct chunks *c, uint32_t chunk, uint32_t grain, uint32_t grains);

/*
 * Every chunk that was made is in the kernel's sight when this returns 0.
 * What the kernel refused to put there stays an error, and none is made then.
 */
int chunks_commit(struct chunks *c, struct err *e);

/* Do blocks of these sizes fit when they are taken in this order and nothing else is there? */
bool chunks_ever_fit(
	const struct chunks *c, uint32_t (*grains)(const void *ctx, uint32_t i), const void *ctx, uint32_t n);

struct chunks_stats {
	uint64_t chunks; /* made */
	uint64_t bytes; /* that the kernel holds for them */
	uint64_t bytes_used; /* by blocks */
};

void chunks_stats(const struct chunks *c, struct chunks_stats *ret);

#endif
