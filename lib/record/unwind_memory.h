/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_memory - the unwind tables and mappings that BPF can see: memory of a
 * bounded size, shared with the kernel.
 *
 * Owns the maps of bpf/unwind.bpf.h: chunks (array of maps, each one element
 * of 256 KiB, mapped here and written in place), segments, rules, the time of
 * last use of each table, and the processes. Made before the programs are
 * loaded, which take them by descriptor, so that tables can be filled while
 * the verifier works. Layouts: bpf/unwind_abi.h.
 *
 * Memory that BPF might still be reading is not used again before
 * unwindspace_quiet() has been called twice; the recorder calls it after each wait for
 * RCU. Not for several threads.
 */
#ifndef STACKTOOLS_RECORD_UNWIND_MEMORY_H
#define STACKTOOLS_RECORD_UNWIND_MEMORY_H

#include "base/base.h"
#include "base/err.h"
#include "system/broker.h"
#include "unwind/table.h"
#include "unwind_abi.h"

/*
 * bitrun - numbers of a small range, taken and given back by runs, lowest
 * place first.
 *
 * A bit a number. Neighbours that are given back make one run again without
 * any work, and nothing but the bits is kept, so giving back cannot fail.
 */

struct bitrun {
	uint64_t *words;
	uint32_t bits;
	uint32_t used; /* how many are taken */
	uint32_t longest; /* no free run is longer */
};

/* BITS numbers from 0, all free. -ENOMEM. Release with bitrun_close(). */
int bitrun_open(struct bitrun *b, uint32_t bits);
void bitrun_close(struct bitrun *b); /* a zeroed one is fine */

/* Take the first run of N (at least one) free numbers, *AT the first of them. False when there is none. */
bool bitrun_take(struct bitrun *b, uint32_t n, uint32_t *at);
void bitrun_give(struct bitrun *b, uint32_t at, uint32_t n);

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

#define CHUNKS_GRAINS (UNWIND_CHUNK_BYTES / UNWIND_GRAIN) /* of a chunk */
#define CHUNKS_MAP_HEADER                                                                                    \
	4096 /* bytes of the kernel for each chunk more: in front of values that can be mapped */

struct chunks;

struct chunks_block {
	uint32_t chunk, grain;
	void *p;
};

/*
 * An array of N maps (at least two, for the first is never used; at most
 * 65000), and the thread begins to make FIRST chunks. OPENER (NULL = none) is
 * asked for those that this process may not make. On success *RET is the caller's. The message
 * tells when BPF is not permitted.
 */
int chunks_open(uint32_t n, uint32_t first, struct worker *broker, struct chunks **ret, struct err *e);
void chunks_close(struct chunks *c); /* NULL is fine */
int chunks_fd(const struct chunks *c); /* of the array of maps */

/*
 * Make so many chunks that GRAINS are free, if only in pieces. -ENOSPC when
 * they cannot be; else the kernel's -errno.
 */
int chunks_reserve(struct chunks *c, uint64_t grains, struct err *e);

/* A block of GRAINS (1 to CHUNKS_GRAINS). -ENOSPC when the bound is reached; else the kernel's -errno. */
int chunks_take(struct chunks *c, uint32_t grains, struct chunks_block *ret, struct err *e);

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

/*
 * ruleset - the distinct rules of a recording, numbered, in an array that BPF
 * reads.
 *
 * A rule keeps its number as long as somebody holds it; each take counts.
 * Rule 0 (all zero: no unwind information) is always there and not counted.
 * Not for several threads.
 */

struct ruleset;

/* On success *RET is the caller's. */
int ruleset_open(struct ruleset **ret, struct err *e);
void ruleset_close(struct ruleset *r); /* NULL is fine */
int ruleset_fd(const struct ruleset *r); /* of the array of UNWIND_RULES_MAX rules */

/* The number of RULE, the same for equal rules. -ENOSPC when every number is taken. */
int ruleset_take(struct ruleset *r, const struct unwind_rule *rule, uint16_t *ret);

/* Undo one take. With the last one the number is free, and is rule 0 until it is taken again. */
void ruleset_give(struct ruleset *r, uint16_t number);

uint32_t ruleset_count(const struct ruleset *r); /* distinct ones, without rule 0 */

struct unwindspace;

struct unwindspace_opts {
	uint64_t bytes; /* of chunks at most, rounded down to whole ones, at least two; one is never used */
	uint32_t segs; /* room in the array of segments; 0 = 65536, 4 GiB of text */
	uint32_t procs; /* room for processes; 0 = 16384 */
	bool procs_at_once; /* allocate it all now: kernels before 6.1 log a warning when a raw or classic
			       tracepoint's program uses memory that is allocated later */
	uint32_t first_chunks; /* made and put in place by a thread meanwhile */
	struct worker *broker; /* makes chunks when this process may not any more; NULL = none */
};

/* The descriptors of the maps, for bpf_map__reuse_fd(). */
struct unwindspace_fds {
	int chunks, segs, rules, used, procs;
};

int unwindspace_open(const struct unwindspace_opts *opts, struct unwindspace **ret, struct err *e);
void unwindspace_close(struct unwindspace *s); /* NULL is fine */
void unwindspace_fds(const struct unwindspace *s, struct unwindspace_fds *ret);

/*
 * Copy table TAB (of at least one segment) into the chunks. *TABLE is its
 * number, *SEG the place of its first segment. All or nothing: -ENOSPC when
 * the bound is reached (remove tables, call quiet, try again) or when rules
 * or segments ran out; -E2BIG when it could never fit.
 */
int unwindspace_add(
	struct unwindspace *s, const struct unwindtab *tab, uint32_t *table, uint32_t *seg, struct err *e);

/*
 * The rule in force AT bytes behind the beginning of the first of the SEGS
 * segments from SEG on, as BPF finds it; NULL where there is none. Until the
 * table is removed.
 */
const struct unwind_rule *unwindspace_rule(
	const struct unwindspace *s, uint32_t seg, uint32_t segs, uint64_t at);

/* No mapping names TABLE any more: its memory is free once it is quiet. */
void unwindspace_remove(struct unwindspace *s, uint32_t table);

/* When TABLE was last used by a walk, or else added, CLOCK_MONOTONIC; 0 = never. */
uint64_t unwindspace_used_ns(const struct unwindspace *s, uint32_t table);

/* A run of mappings in the chunks: written by the caller, read by BPF once a process refers to it. */
struct unwindspace_maps {
	struct unwind_map *maps; /* writable, N of them; NULL when N = 0 */
	uint32_t chunk, grain, n;
};

/* Room for N mappings. -ENOSPC as above, -E2BIG beyond UNWIND_MAPS_MAX. */
int unwindspace_maps_new(struct unwindspace *s, uint32_t n, struct unwindspace_maps *ret, struct err *e);
void unwindspace_maps_drop(struct unwindspace *s, const struct unwindspace_maps *m);

/*
 * Everything that was added is in the kernel's sight when this returns 0:
 * call it before a mapping or a process refers to it. Cheap, and it does not
 * wait for RCU: a new chunk is seen as soon as a thread has put it in place.
 */
int unwindspace_commit(struct unwindspace *s, struct err *e);

/*
 * Process TGID has these mappings from now on (replaces, atomically for BPF).
 * -ENOSPC when there is no room for another process.
 */
int unwindspace_proc_set(struct unwindspace *s, uint32_t tgid, const struct unwind_proc *p, struct err *e);

/* What BPF has for TGID, which it may have put there itself at a fork. False when there is nothing. */
bool unwindspace_proc_get(const struct unwindspace *s, uint32_t tgid, struct unwind_proc *ret);

/* Drop every process that KEEP does not want. */
void unwindspace_procs_sweep(struct unwindspace *s,
	bool (*keep)(void *ctx, uint32_t tgid, const struct unwind_proc *p), void *ctx);

void unwindspace_proc_drop(struct unwindspace *s, uint32_t tgid);

/* An RCU grace period has passed since the last call. */
void unwindspace_quiet(struct unwindspace *s);

struct unwindspace_stats {
	uint64_t bytes; /* that the kernel holds for chunks, segments, rules and times */
	uint64_t bytes_used; /* of the chunks, by tables and mappings, until they are quiet */
	uint64_t rows, tables; /* without those that were removed */
	uint64_t rules; /* distinct ones, until their tables are quiet */
};

void unwindspace_stats(const struct unwindspace *s, struct unwindspace_stats *ret);

#endif
