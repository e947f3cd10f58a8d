/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_memory - the unwind tables and mappings that BPF reads: memory of
 * bounded size, shared with the kernel.
 *
 * Owns the maps of bpf/unwind.bpf.h: chunks (array of maps, each one element of
 * 256 KiB, mapped here and written in place), segments, rules, the time of last
 * use of each table, and the processes. They are created before the programs
 * are loaded, so that tables can be filled while the verifier works; the
 * programs take them by descriptor. Layouts: bpf/unwind_abi.h.
 *
 * Memory that BPF might still be reading is not used again before
 * unwindspace_quiet() has been called twice; the recorder calls it after each
 * wait for RCU. Not thread-safe.
 */
#ifndef STACKTOOLS_RECORD_UNWIND_MEMORY_H
#define STACKTOOLS_RECORD_UNWIND_MEMORY_H

#include "base/base.h"
#include "base/err.h"
#include "system/broker.h"
#include "hotspot_abi.h"
#include "runtime_abi.h"
#include "unwind/table.h"
#include "unwind_abi.h"

/*
 * bitrun - an allocator of numbers from a small range, in runs, lowest first.
 *
 * One bit per number. Runs that are given back merge with free neighbours
 * without any work, and nothing but the bits is stored, so giving back cannot
 * fail.
 */

struct bitrun {
	uint64_t *words;
	uint32_t bits;
	uint32_t used; /* numbers that are taken */
	uint32_t longest; /* no free run is longer */
};

/* BITS numbers from 0, all free. 0 or -ENOMEM. Release with bitrun_close(). */
int bitrun_open(struct bitrun *b, uint32_t bits);
void bitrun_close(struct bitrun *b); /* a zeroed one is fine */

/* Take the first run of N (at least one) free numbers; *AT is its first number. False if there is none. */
bool bitrun_take(struct bitrun *b, uint32_t n, uint32_t *at);
void bitrun_give(struct bitrun *b, uint32_t at, uint32_t n);

/*
 * chunks - memory that this process writes and BPF reads: maps of 256 KiB in an
 * array of maps, made as they are needed, and blocks inside them.
 *
 * Chunk 0 does not exist. Chunks are returned to the kernel only at the end;
 * their blocks are reused. A block is a whole number of grains of UNWIND_GRAIN
 * bytes and lies in one chunk, in the first place where it fits.
 *
 * Threads make the chunks and put them into the array. This process can use a
 * chunk once it is made; BPF sees it once it is in the array. The system call
 * that puts it there returns only after an RCU grace period (5 to 30 ms), to
 * protect readers of the entry that it replaces. There was no such entry, so
 * the caller does not wait for the thread, unless many threads wait already.
 * All calls must come from one thread.
 */

#define CHUNKS_GRAINS (UNWIND_CHUNK_BYTES / UNWIND_GRAIN) /* grains in a chunk */
#define CHUNKS_MAP_HEADER                                                                                    \
	4096 /* bytes that the kernel adds to each chunk, in front of the values that can be mapped */

struct chunks;

struct chunks_block {
	uint32_t chunk, grain;
	void *p;
};

/*
 * Create an array of N maps (at least two, because the first is never used; at
 * most 65000), and start a thread that makes FIRST chunks. BROKER (NULL = none)
 * makes those that this process may not. On success release *RET with
 * chunks_close(). The error message says if BPF is not permitted.
 */
int chunks_open(uint32_t n, uint32_t first, struct worker *broker, struct chunks **ret, struct err *e);
void chunks_close(struct chunks *c); /* NULL is fine */
int chunks_fd(const struct chunks *c); /* of the array of maps */

/*
 * Make chunks until GRAINS are free, possibly in pieces. -ENOSPC if the limit
 * does not allow that; else the kernel's -errno.
 */
int chunks_reserve(struct chunks *c, uint64_t grains, struct err *e);

/* Take a block of GRAINS (1 to CHUNKS_GRAINS). -ENOSPC if the limit is reached; else the kernel's -errno. */
int chunks_take(struct chunks *c, uint32_t grains, struct chunks_block *ret, struct err *e);

void chunks_give(struct chunks *c, uint32_t chunk, uint32_t grain, uint32_t grains);

/*
 * Make sure that BPF sees every chunk that was made. If the kernel refuses to
 * put one into the array, this and all later calls fail, and no more chunks are
 * made.
 */
int chunks_commit(struct chunks *c, struct err *e);

/* Would blocks of these sizes fit if they were taken in this order and nothing else was there? */
bool chunks_ever_fit(
	const struct chunks *c, uint32_t (*grains)(const void *ctx, uint32_t i), const void *ctx, uint32_t n);

struct chunks_stats {
	uint64_t chunks; /* that were made */
	uint64_t bytes; /* kernel memory that they take */
	uint64_t bytes_used; /* taken by blocks */
};

void chunks_stats(const struct chunks *c, struct chunks_stats *ret);

/*
 * ruleset - the distinct rules of a recording, numbered, in an array that BPF
 * reads.
 *
 * A rule keeps its number while it has references; each take adds one. Rule 0
 * (all zero: no unwind information) always exists and is not counted. Not
 * thread-safe.
 */

struct ruleset;

/* On success release *RET with ruleset_close(). */
int ruleset_open(struct ruleset **ret, struct err *e);
void ruleset_close(struct ruleset *r); /* NULL is fine */
int ruleset_fd(const struct ruleset *r); /* of the array of UNWIND_RULES_MAX rules */

/* The number of RULE, the same for equal rules. -ENOSPC if every number is taken, or out of memory. */
int ruleset_take(struct ruleset *r, const struct unwind_rule *rule, uint16_t *ret);

/* Undo one take. The last one frees the number, which is rule 0 until it is taken again. */
void ruleset_give(struct ruleset *r, uint16_t number);

uint32_t ruleset_count(const struct ruleset *r); /* distinct ones, without rule 0 */

struct unwindspace;

struct unwindspace_opts {
	uint64_t bytes; /* limit for chunks, rounded down to whole ones, at least two; one is never used */
	uint32_t segs; /* room in the array of segments; 0 = 65536, 4 GiB of text */
	uint32_t procs; /* room for processes; 0 = 16384 */
	bool procs_at_once; /* allocate all of that now: kernels before 6.1 log a warning if a raw or classic
			       tracepoint's program uses memory that is allocated later */
	uint32_t first_chunks; /* chunks that a thread makes in the background */
	struct worker *broker; /* makes chunks when this process no longer may; NULL = none */
};

/* The descriptors of the maps, for bpf_map__reuse_fd(). */
struct unwindspace_fds {
	int chunks, segs, rules, used, procs, runtimes, hotspots;
};

int unwindspace_open(const struct unwindspace_opts *opts, struct unwindspace **ret, struct err *e);
void unwindspace_close(struct unwindspace *s); /* NULL is fine */
void unwindspace_fds(const struct unwindspace *s, struct unwindspace_fds *ret);

/*
 * Copy table TAB (of at least one segment) into the chunks. *TABLE is its
 * number, *SEG the place of its first segment. All or nothing: -ENOSPC if the
 * limit is reached (remove tables, call unwindspace_quiet(), try again) or if
 * rules or segments ran out; -E2BIG if it could never fit.
 */
int unwindspace_add(
	struct unwindspace *s, const struct unwindtab *tab, uint32_t *table, uint32_t *seg, struct err *e);

/*
 * The rule that applies AT bytes after the start of the SEGS segments from SEG
 * on, as BPF finds it; NULL = none. Valid until the table is removed.
 */
const struct unwind_rule *unwindspace_rule(
	const struct unwindspace *s, uint32_t seg, uint32_t segs, uint64_t at);

/*
 * Remove TABLE, to which no mapping refers any more. Its memory is free after
 * two calls of unwindspace_quiet().
 */
void unwindspace_remove(struct unwindspace *s, uint32_t table);

/* When a walk last used TABLE, or else when it was added, CLOCK_MONOTONIC; 0 = never. */
uint64_t unwindspace_used_ns(const struct unwindspace *s, uint32_t table);

/* A run of mappings in the chunks: written by the caller, read by BPF once a process refers to it. */
struct unwindspace_maps {
	struct unwind_map *maps; /* writable, N of them; NULL when N = 0 */
	uint32_t chunk, grain, n;
};

/* Get zeroed room for N mappings. -ENOSPC as above, -E2BIG beyond UNWIND_MAPS_MAX. */
int unwindspace_maps_new(struct unwindspace *s, uint32_t n, struct unwindspace_maps *ret, struct err *e);
void unwindspace_maps_drop(struct unwindspace *s, const struct unwindspace_maps *m);

/*
 * Make sure that BPF sees everything that was added: call it before a mapping
 * or a process refers to it. Cheap, because it does not wait for RCU: BPF sees
 * a new chunk as soon as a thread has put it into the array.
 */
int unwindspace_commit(struct unwindspace *s, struct err *e);

/*
 * Set the mappings of process TGID; the replacement is atomic for BPF. -ENOSPC
 * if there is no room for another process.
 */
int unwindspace_proc_set(struct unwindspace *s, uint32_t tgid, const struct unwind_proc *p, struct err *e);

/* Show BPF the interpreter's file F as NUMBER, before a process refers to it. */
int unwindspace_runtime_set(
	struct unwindspace *s, uint32_t number, const struct runtime_file *f, struct err *e);

/* The same for what belongs to HotSpot only. */
int unwindspace_hotspot_set(
	struct unwindspace *s, uint32_t number, const struct hotspot_file *f, struct err *e);

/* Get the mappings that BPF has for TGID; BPF may have set them itself at a fork. False if there are none. */
bool unwindspace_proc_get(const struct unwindspace *s, uint32_t tgid, struct unwind_proc *ret);

/* Drop every process for which KEEP returns false. */
void unwindspace_procs_sweep(struct unwindspace *s,
	bool (*keep)(void *ctx, uint32_t tgid, const struct unwind_proc *p), void *ctx);

void unwindspace_proc_drop(struct unwindspace *s, uint32_t tgid);

/* An RCU grace period has passed since the last call: free what was removed before that call. */
void unwindspace_quiet(struct unwindspace *s);

struct unwindspace_stats {
	uint64_t bytes; /* kernel memory of chunks, segments, rules and times */
	uint64_t bytes_used; /* in chunks, by tables and mappings; removed ones count until they are free */
	uint64_t rows, tables; /* without removed ones */
	uint64_t rules; /* distinct ones, including those of removed tables until these are free */
};

void unwindspace_stats(const struct unwindspace *s, struct unwindspace_stats *ret);

#endif
