/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_tables - the unwind tables of the files that processes map.
 *
 * Who is asked for the table of a file (tabfiles_*()): the disk cache, else the
 * worker process (unwind/worker.h); where it goes, and which one goes for it when
 * memory is short, is tabroom_*()'s. One that no process maps is given up some
 * seconds later. What the worker made is written to the cache at the end. A
 * file that cannot be opened is counted once, and has no table.
 */
#ifndef STACKTOOLS_RECORD_UNWIND_TABLES_H
#define STACKTOOLS_RECORD_UNWIND_TABLES_H

#include "record/unwind_memory.h"
#include "system/maps.h"

struct tableset;

struct tableset_opts {
	/*
	 * What tables and mappings may take of the kernel's memory, its headers of
	 * their maps included, the arrays of fixed size (tableset_stats.space) not;
	 * 0 = a sixteenth of the machine's memory, up to 512 MiB.
	 */
	uint64_t bytes;
	bool all; /* the whole machine: more room at once */
	bool raw; /* for programs of mode raw: unwindspace_opts.procs_at_once */
	struct worker *broker; /* for what our own rights do not reach, outlives the set; NULL = none */
	uint64_t idle_ns; /* how long a table that nobody maps is kept; 0 = ten seconds */
};

/* Forks the worker: call it before anything worth protecting is open. On success *RET is the caller's. */
int tableset_open(const struct tableset_opts *opts, struct tableset **ret, struct err *e);
void tableset_close(struct tableset *t); /* NULL is fine */

struct worker *tableset_broker(const struct tableset *t);
struct unwindspace *tableset_space(struct tableset *t); /* stays T's */

int tableset_fd(const struct tableset *t); /* for poll(2): readable when tables came */
uint32_t tableset_worker(const struct tableset *t); /* PID of the process that makes them; 0 = none now */

#define TABLESET_NO_FILE UINT32_MAX /* anonymous memory, or nothing that could have a table */

/*
 * The number of the file that process PID maps as M. A new one is asked for.
 * Each number is held by the caller until tableset_release().
 */
uint32_t tableset_file(struct tableset *t, uint32_t pid, const struct procmap *m);

/*
 * The same of what it mapped at MADE_NS, CLOCK_REALTIME; false, with nothing
 * held, when that cannot be told: see mapfile_stat_then().
 */
bool tableset_file_then(
	struct tableset *t, uint32_t pid, const struct procmap *m, uint64_t made_ns, uint32_t *file);

void tableset_hold(struct tableset *t, uint32_t file);
void tableset_release(struct tableset *t, uint32_t file);

/* What a mapping of FILE at START with file offset OFFSET is to BPF: bias and word of RET. */
void tableset_map(
	const struct tableset *t, uint32_t file, uint64_t start, uint64_t offset, struct unwind_map *ret);

/*
 * Take the tables that came, waiting up to TIMEOUT_MS for all that were asked
 * for (0: only what is there). True when tableset_map() tells other things
 * than before of some files: those for which tableset_changed() is true, until
 * tableset_applied(). They are to be applied before tableset_quiet().
 */
bool tableset_service(struct tableset *t, int timeout_ms);
bool tableset_changed(const struct tableset *t, uint32_t file);

/*
 * Has a walk been stopped lately because FILE's table was dropped? Then
 * tableset_file() asks for it again, as others may have become idle.
 */
bool tableset_wanted(const struct tableset *t, uint32_t file);
void tableset_applied(struct tableset *t);

/*
 * Mappings of LEN bytes found no room: give up the tables that were used least.
 * It is free after two quiet periods. False when none can be given up now.
 */
bool tableset_room(struct tableset *t, size_t len);

/* An RCU grace period has passed: memory given up can be used again. */
void tableset_quiet(struct tableset *t);

struct tableset_stats {
	uint64_t files; /* that were looked at */
	uint64_t failed; /* of them, without a table for an error, or not to be opened: `why` is the last
			    one's message */
	uint64_t bare; /* of them, without unwind information */
	uint64_t pending; /* of them, not ready yet */
	uint64_t dropped; /* tables given up, or not made, for lack of memory */
	uint64_t cached; /* tables that the disk cache had */
	uint64_t worker_lost; /* how often no process could be had that compiles them: `worker_why` */
	struct unwindspace_stats space;
	char why[256], worker_why[256];
};

void tableset_stats(const struct tableset *t, struct tableset_stats *ret);

#endif
