/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwindspace - the unwind tables and mappings that BPF can see: memory of a
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
#ifndef STACKTOOLS_UNWINDSPACE_H
#define STACKTOOLS_UNWINDSPACE_H

#include "base/err.h"
#include "system/broker.h"
#include "unwind/table.h"

struct unwindspace;

struct unwindspace_opts {
	uint64_t bytes; /* of chunks at most, rounded down to whole ones, at least two; one is never used */
	uint32_t segs; /* room in the array of segments; 0 = 65536, 4 GiB of text */
	uint32_t procs; /* room for processes; 0 = 16384 */
	bool procs_at_once; /* allocate it all now: kernels before 6.1 log a warning when a raw or classic
			       tracepoint's program uses memory that is allocated later */
	uint32_t first_chunks; /* made and put in place by a thread meanwhile */
	struct opener *opener; /* makes chunks when this process may not any more; NULL = none */
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
