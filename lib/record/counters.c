/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/counters.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

static void write_all(struct capwrite *w, const struct cap_counter *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		capwrite_counter(w, &all[i]);
}

static void write_waits(const struct recorder_stats *st, struct capwrite *w)
{
	const struct cap_counter all[] = {
		{ "waits.seen", st->bpf.seen },
		{ "waits.seen_ns", st->bpf.seen_ns },
		{ "waits.recorded", st->bpf.recorded },
		{ "waits.recorded_ns", st->bpf.recorded_ns },
		{ "filtered.preempted", st->bpf.preempted },
		{ "filtered.preempted_ns", st->bpf.preempted_ns },
		{ "filtered.state", st->bpf.state },
		{ "filtered.state_ns", st->bpf.state_ns },
		{ "filtered.min", st->bpf.min },
		{ "filtered.min_ns", st->bpf.min_ns },
		{ "filtered.max", st->bpf.max },
		{ "filtered.max_ns", st->bpf.max_ns },
		{ "filtered.owner", st->bpf.owner },
		{ "waits.invisible", st->bpf.invisible },
		{ "lost.map_full", st->bpf.agg_full },
		{ "lost.map_full_ns", st->bpf.agg_full_ns },
		{ "lost.no_storage", st->bpf.storage },
		{ "lost.begin_unseen", st->bpf.begin_unseen },
		{ "waits.end_estimated", st->bpf.end_estimated },
		{ "lost.memory", st->rows_lost },
		{ "lost.stacks", st->stacks.lost },
		{ "lost.process_events", st->procs.events_lost },
		{ "lost.maps", st->procs.maps_lost },
		{ "maps.refused", st->procs.maps_refused },
		{ "stacks.distinct", st->stacks.stacks },
		{ "stacks.truncated", st->stacks.truncated },
		{ "stacks.kernel_failed", st->bpf.kernel_failed },
		{ "stacks.user_failed", st->bpf.user_failed },
		{ "stacks.resent", st->bpf.ring_full },
		{ "names.resent", st->bpf.ring_thread },
		{ "names.kernel_missing", st->stacks.kernel_unnamed },
		{ "files.unread", st->procs.files_unread },
		{ "clock.back", st->bpf.clock_back },
		{ "opener.asked", st->broker.asked },
		{ "opener.lost", st->broker.lost },
		{ "processes", st->procs.images },
	};

	write_all(w, all, ARRAY_LEN(all));
}

/* Waits by the end of their user stack: user.complete, user.short.no-row ... */
static void write_user(const struct recorder_stats *st, struct capwrite *w)
{
	char name[64];

	for (unsigned int v = CAP_COMPLETE; v <= CAP_TRUNCATED; v++) {
		snprintf(name, sizeof(name), "user.%s", capture_verdict_name(v));
		capwrite_counter(w, &(struct cap_counter){ name, st->user.verdicts[v] });
	}
	for (unsigned int i = 0; i < CAP_R_COUNT; i++) {
		snprintf(name, sizeof(name), "user.short.%s", capture_reason_name(i));
		if (st->user.reasons[i])
			capwrite_counter(w, &(struct cap_counter){ name, st->user.reasons[i] });
	}
}

/* Stacks that were walked from a snapshot, and why others were not. */
static void write_snapshots(const struct recorder_stats *st, struct capwrite *w)
{
	const struct snapset_stats *s = &st->snaps;
	const struct cap_counter all[] = {
		{ "unwind.snapshots", st->bpf.snapshots },
		{ "unwind.snapshots_complete", s->complete },
		{ "unwind.snapshots_cut", s->cut },
		{ "unwind.snapshots_short", s->short_stack },
		{ "unwind.snapshots_by_fp", s->by_fp },
		{ "unwind.snapshots_unmapped", s->unmapped },
		{ "unwind.snapshots_late", s->late },
		{ "unwind.snapshots_no_memory", s->memory },
		{ "unwind.snapshots_ring_full", st->bpf.snapshots_ring },
		{ "unwind.snapshots_too_many", st->bpf.snapshots_limit },
	};

	write_all(w, all, ARRAY_LEN(all));
}

static void write_tables(const struct recorder_stats *st, struct capwrite *w)
{
	const struct tableset_stats *t = &st->unwind.tables;
	const struct cap_counter all[] = {
		{ "unwind.walked_late", st->bpf.walked_late },
		{ "unwind.processes", st->unwind.procs },
		{ "unwind.maps_cut", st->unwind.maps_cut },
		{ "unwind.files", t->files },
		{ "unwind.files_failed", t->failed },
		{ "unwind.files_bare", t->bare },
		{ "unwind.tables", t->space.tables },
		{ "unwind.tables_dropped", t->dropped },
		{ "unwind.tables_cached", t->cached },
		{ "unwind.worker_lost", t->worker_lost },
		{ "unwind.rows", t->space.rows },
		{ "unwind.bytes", t->space.bytes },
	};

	write_all(w, all, ARRAY_LEN(all));
}

/* Where frames were in memory that no file names code of. */
static void write_jit(const struct jitkeep_stats *st, struct capwrite *w)
{
	const struct cap_counter all[] = {
		{ "jit.processes", st->processes },
		{ "jit.unseen", st->unseen },
		{ "jit.maps_read", st->maps_read },
		{ "jit.entries_kept", st->entries_kept },
		{ "jit.bad_lines", st->bad_lines },
		{ "jit.refused", st->refused },
		{ "jit.stale", st->stale },
		{ "jit.failed", st->failed },
		{ "jit.cut", st->cut },
	};

	if (st->processes)
		write_all(w, all, ARRAY_LEN(all));
}

/* Names that are stored for readers without the files; 0 before the end. */
static void write_names(const struct recorder_stats *st, struct capwrite *w)
{
	const struct cap_counter all[] = {
		{ "names.stored", st->names.stored },
		{ "names.plain", st->names.plain },
		{ "names.files", st->names.files },
		{ "names.unresolved", st->names.unresolved },
		{ "names.late", st->names.late },
	};

	write_all(w, all, ARRAY_LEN(all));
}

void recstats_write(const struct recorder_stats *st, struct capwrite *w)
{
	write_waits(st, w);
	write_user(st, w);
	write_jit(&st->jit, w);
	if (st->by_name)
		write_names(st, w);
	if (st->by_table)
		write_tables(st, w);
	if (st->by_table)
		write_snapshots(st, w);
}

void rectext_seconds(struct buf *b, uint64_t ns)
{
	uint64_t ms = ns / 1000000 + (ns % 1000000 >= 500000);

	buftext_dec(b, ms / 1000, 1);
	buftext_str(b, ".");
	buftext_dec(b, ms % 1000, 3);
}

/* A line of the summary begins with two spaces. */
static void put_count(struct buf *b, const char *before, uint64_t n, const char *after)
{
	buftext_str(b, before);
	buftext_dec(b, n, 1);
	buftext_str(b, after);
}

void rectext_progress(struct buf *b, const struct recorder_stats *st)
{
	uint64_t tenths = (st->now_ns - st->start_ns) / 100000000;

	buftext_printf(b, "%" PRIu64 ".%u s", tenths / 10, (unsigned int)(tenths % 10));
	put_count(b, "  ", st->waits, " waits");
	put_count(b, "  ", st->stacks.stacks, " stacks");
	put_count(b, "  ", st->procs.images, " processes");
	put_count(b, "  ", st->lost, " lost");
}

void rectext_head(struct buf *b, const struct rectext_head *h, const struct rectext_told *told)
{
	buftext_str(b, told->name);
	buftext_str(b, ": ");
	rectext_seconds(b, h->ns);
	put_count(b, h->about ? " s, about " : " s, ", h->waits, " waits of ");
	rectext_seconds(b, h->waits_ns);
	put_count(b, " s in all, ", h->stacks, " stacks, ");
	put_count(b, "", h->processes, " processes; ");
	put_count(b, "", h->bytes, " bytes in '");
	buftext_escaped(b, told->path, TEXT_LINE);
	buftext_str(b, "'\n");
}

void rectext_command(struct buf *b, const struct command *c)
{
	if (!c->ended)
		buftext_printf(b, "  the command still runs, as process %d\n", (int)c->pid);
	else if (WIFSIGNALED(c->status))
		buftext_printf(b, "  the command was ended by signal %d (%s)\n", WTERMSIG(c->status),
			strsignal(WTERMSIG(c->status)));
	else
		buftext_printf(b, "  the command's exit status: %d\n", WEXITSTATUS(c->status));
}

static void put_filtered(struct buf *b, const struct offcpu_counters *c)
{
	const struct {
		const char *what;
		uint64_t n, ns;
	} rows[] = { { "runnable all the while (--preempted records them)", c->preempted, c->preempted_ns },
		{ "in another state than --state", c->state, c->state_ns },
		{ "shorter than --min", c->min, c->min_ns }, { "longer than --max", c->max, c->max_ns } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!rows[i].n)
			continue;
		put_count(b, "  left out: ", rows[i].n, " waits, ");
		rectext_seconds(b, rows[i].ns);
		buftext_str(b, " s, ");
		buftext_str(b, rows[i].what);
		buftext_str(b, "\n");
	}
}

static void put_owner(struct buf *b, uint64_t waits)
{
	if (waits)
		put_count(b, "  left out: ", waits,
			" waits of processes that you may not trace: capabilities of this program's file are "
			"for your own; run it as root for all\n");
}

static void put_invisible(struct buf *b, uint64_t n)
{
	if (n)
		put_count(
			b, "  left out: ", n, " waits of processes that this PID namespace does not show\n");
}

/* How many waits have their whole user stack, and what became of the others. */
static void put_user(struct buf *b, const struct recorder_stats *st)
{
	if (!capends_waits(&st->user))
		return;
	buftext_str(b, "  user stacks: ");
	capends_put(b, &st->user);
	buftext_str(b, "\n");
	/* tables that came after the wait had begun: of a command that could not be held, of its libraries */
	if (st->bpf.snapshots) {
		put_count(b, "  walked later, from copies of the stack: ", st->snaps.complete + st->snaps.cut,
			"");
		put_count(b, " of ", st->bpf.snapshots, "\n");
	}
}

/* Names that a reader without the files will miss for another reason than that there are none. */
static void put_names(struct buf *b, const struct recorder_stats *st, bool verbose)
{
	if (!st->by_name)
		return;
	if (verbose) {
		put_count(b, "  names: ", st->names.stored, " stored, of ");
		put_count(b, "", st->names.files, " files; ");
		put_count(b, "", st->names.unresolved, " places in files have none; ");
		put_count(b, "", st->names.plain, " are without inlined calls and lines\n");
	}
	if (verbose || st->names.late)
		put_count(b, "  ", st->names.late,
			" places in files have no name stored: no time was left to look them up\n");
}

static void put_tables(struct buf *b, const struct recorder_stats *st, bool verbose)
{
	const struct tableset_stats *t = &st->unwind.tables;

	if (!st->by_table)
		return;
	if (verbose) {
		put_count(b, "  unwind tables: ", t->space.tables, " in use, ");
		put_count(b, "", t->space.rows, " rows, ");
		put_count(b, "", t->space.bytes, " bytes; ");
		put_count(b, "", t->files, " files looked at, ");
		put_count(b, "", t->cached, " from the cache, ");
		put_count(b, "", t->bare, " without unwind information\n");
	}
	if (t->failed) {
		put_count(b, "  unwind tables of ", t->failed, " files could not be made, the last for: ");
		buftext_escaped(b, t->why, TEXT_LINE);
		buftext_str(b, "\n");
	}
	if (t->worker_lost) {
		put_count(b, "  the process that makes unwind tables was lost ", t->worker_lost, " times: ");
		buftext_escaped(b, t->worker_why, TEXT_LINE);
		buftext_str(b, "\n");
	}
	if (t->dropped)
		put_count(b, "  ", t->dropped,
			" unwind tables had no room in memory: --unwind-memory raises the bound\n");
	if (st->unwind.maps_cut)
		put_count(b, "  ", st->unwind.maps_cut,
			" mappings are beyond what a process can have, or had no room in memory\n");
}

static void put_short(struct buf *b, const struct recorder_stats *st, bool verbose)
{
	if (st->stacks.truncated)
		put_count(b, "  ", st->stacks.truncated,
			" stacks were cut at the depth limit: --depth raises it\n");
	if (verbose) {
		put_count(b, "  ", st->bpf.kernel_failed, " kernel and ");
		put_count(b, "", st->bpf.user_failed, " user stacks had no frames\n");
	}
	if (st->procs.files_unread)
		put_count(b, "  ", st->procs.files_unread,
			st->by_table
				? " mapped files could not be read: frames in them have no names, and are "
				  "left by frame pointer\n"
				: " mapped files could not be read: frames in them have no names\n");
	if (st->procs.maps_refused)
		put_count(b, "  user frames of ", st->procs.maps_refused,
			" processes have no names: reading their maps takes CAP_SYS_PTRACE\n");
}

static void put_degraded(struct buf *b, const char *degraded)
{
	if (!degraded[0])
		return;
	buftext_str(b, "  degraded: ");
	buftext_escaped(b, degraded, TEXT_LINE);
	buftext_str(b, "\n");
}

/* What this recording itself could still do, and what it could not any more. */
void rectext_privileges(struct buf *b, const char *privileges)
{
	if (!privileges || !privileges[0])
		return;
	buftext_str(b, "  privileges: ");
	buftext_str(b, privileges);
	buftext_str(b, "\n");
}

static void put_lost(struct buf *b, const struct recorder_stats *st, bool all)
{
	const struct {
		const char *what;
		uint64_t n;
	} rows[] = { { " waits: the aggregation map was full\n", st->bpf.agg_full },
		{ " waits: no task storage\n", st->bpf.storage },
		{ " waits: the kernel did not tell of their beginning\n", st->bpf.begin_unseen },
		{ " samples without a stack: the ring buffer was full\n", st->stacks.lost },
		{ " process events: their buffer was full\n", st->procs.events_lost },
		{ " processes without mappings: they had ended or could not be read\n", st->procs.maps_lost },
		{ " samples: the recorder had no memory\n", st->rows_lost },
		{ " files and maps not opened: the process that opens them had ended\n", st->broker.lost } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].n || all)
			put_count(b, "  lost: ", rows[i].n, rows[i].what);
	if (!st->lost && !all)
		buftext_str(b, "  lost: nothing\n");
}

void rectext_summary(struct buf *b, const struct recorder_stats *st, const struct rectext_told *told)
{
	const struct rectext_head head = { .ns = st->now_ns - st->start_ns,
		.waits = st->waits,
		.waits_ns = st->waits_ns,
		.stacks = st->stacks.stacks,
		.processes = st->procs.images,
		.bytes = st->bytes };

	rectext_head(b, &head, told);
	if (told->command)
		rectext_command(b, told->command);
	put_filtered(b, &st->bpf);
	put_owner(b, st->bpf.owner);
	put_invisible(b, st->bpf.invisible);
	put_user(b, st);
	put_tables(b, st, told->verbose);
	put_names(b, st, told->verbose);
	put_short(b, st, told->verbose);
	if (told->verbose)
		rectext_privileges(b, st->privileges);
	put_degraded(b, st->degraded);
	put_lost(b, st, told->verbose);
}
