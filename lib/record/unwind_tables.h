/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_tables - the unwind tables of the files that processes map.
 *
 * struct unwind_files has the files and record/table_source.h gives their
 * tables. struct table_room decides where one goes, and which one is dropped
 * for it if memory is short. A table that no process maps is dropped some
 * seconds later. A file that cannot be opened is counted once and has no table.
 */
#ifndef STACKTOOLS_RECORD_UNWIND_TABLES_H
#define STACKTOOLS_RECORD_UNWIND_TABLES_H

#include "record/runtimes.h"
#include "record/table_source.h"
#include "record/unwind_memory.h"
#include "system/maps.h"

struct tableset;

struct tableset_opts {
	/*
	 * Limit of the kernel memory for tables and mappings. It includes the
	 * headers of their maps, but not the arrays of fixed size
	 * (tableset_stats.space); 0 = a sixteenth of the machine's memory, up
	 * to 512 MiB.
	 */
	uint64_t bytes;
	bool all; /* the whole machine is recorded: reserve more room at once */
	bool raw; /* for programs of mode raw: unwindspace_opts.procs_at_once */
	struct worker *broker; /* opens what this process may not; must outlive the set; NULL = none */
	struct runtimes *runtimes; /* recognises interpreters; must outlive the set; NULL = not wanted */
	uint64_t idle_ns; /* how long a table that no process maps is kept; 0 = ten seconds */
};

/*
 * Forks the worker: call it before anything sensitive is open. On success
 * release *RET with tableset_close().
 */
int tableset_open(const struct tableset_opts *opts, struct tableset **ret, struct err *e);
void tableset_close(struct tableset *t); /* NULL is fine */

struct worker *tableset_broker(const struct tableset *t);
struct unwindspace *tableset_space(struct tableset *t); /* belongs to T */

int tableset_fd(const struct tableset *t); /* for poll(2): readable when tables have arrived */
uint32_t tableset_worker(const struct tableset *t); /* PID of the worker; 0 = none now */
uint32_t tableset_store(const struct tableset *t); /* as table_cache_pid() */

#define TABLESET_NO_FILE UINT32_MAX /* anonymous memory, or something that cannot have a table */

/*
 * The number of the file that process PID maps as M. Requests the table of a
 * new file. The caller holds a reference to the number until
 * tableset_release().
 */
uint32_t tableset_file(struct tableset *t, uint32_t pid, const struct procmap *m);

/*
 * The same for a mapping made at MADE_NS, CLOCK_REALTIME. False, without a
 * reference, if the file cannot be determined: see mapfile_stat_then().
 */
bool tableset_file_then(
	struct tableset *t, uint32_t pid, const struct procmap *m, uint64_t made_ns, uint32_t *file);

void tableset_hold(struct tableset *t, uint32_t file);
void tableset_release(struct tableset *t, uint32_t file);

/* Fill in bias and word of RET for a mapping of FILE at START with file offset OFFSET. */
void tableset_map(
	const struct tableset *t, uint32_t file, uint64_t start, uint64_t offset, struct unwind_map *ret);

/*
 * The number of FILE as that of an interpreter (record/runtimes.h), 0 = it is none. M is the result of
 * tableset_map(); *BIAS is what to add to the file's addresses.
 */
uint32_t tableset_runtime(
	const struct tableset *t, uint32_t file, const struct unwind_map *m, uint64_t *bias);

/*
 * Take the tables that have arrived, waiting up to TIMEOUT_MS for all requested
 * ones (0 = do not wait). True if tableset_map() now gives other results for
 * some files: tableset_changed() is true for these until tableset_applied().
 * Apply the changes before tableset_quiet().
 */
bool tableset_service(struct tableset *t, int timeout_ms);
bool tableset_changed(const struct tableset *t, uint32_t file);

/*
 * Did a walk stop lately because FILE's table was dropped? Then tableset_file()
 * requests it again, because others may be idle by now.
 */
bool tableset_wanted(const struct tableset *t, uint32_t file);
void tableset_applied(struct tableset *t);

/*
 * Mappings of LEN bytes found no room: drop the least used tables. Their memory
 * is free after two quiet periods. False if none can be dropped now.
 */
bool tableset_room(struct tableset *t, size_t len);

/* An RCU grace period has passed: memory of dropped tables can be reused. */
void tableset_quiet(struct tableset *t);

struct tableset_stats {
	uint64_t files; /* that were examined */
	uint64_t pending; /* of these, not ready yet */
	uint64_t dropped; /* tables dropped, or not added, for lack of memory */
	struct table_source_stats source;
	struct unwindspace_stats space;
};

void tableset_stats(const struct tableset *t, struct tableset_stats *ret);

#endif
