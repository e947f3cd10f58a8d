/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/recstats.h"

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
		{ "opener.asked", st->opener.asked },
		{ "opener.lost", st->opener.lost },
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
