/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/counters.h"
#include "base/text.h"

#include <string.h>
#include <sys/wait.h>

/*
 * What is seen and not accounted for, while the recording goes on. At its end that is nothing. (The counters
 * of a CPU are read while it counts: a wait may be in another one already, and not in SEEN.)
 */
static void add_unwritten(struct counters *c, bool ns)
{
	struct cap_counter *seen = &c->list[ns],
			   unwritten = { ns ? "waits.unwritten_ns" : "waits.unwritten", 0 };
	struct counters_balance b;
	uint64_t known;

	counters_balance(c->list, c->n, ns, &b);
	known = b.recorded + b.overwritten + b.filtered + b.lost;
	seen->value = MAX(seen->value, known);
	unwritten.value = seen->value - known;
	counters_add(c, &unwritten, 1);
}

static void add_waits(const struct recorder_stats *st, struct counters *c)
{
	/* of a process that the user named, nothing may be missing */
	const uint64_t hidden = st->chosen ? 0 : st->bpf.hidden;
	const struct cap_counter all[] = {
		{ "waits.seen", st->bpf.seen },
		{ "waits.seen_ns", st->bpf.seen_ns },
		{ "waits.recorded", st->waits },
		{ "waits.recorded_ns", st->waits_ns },
		{ "filtered.preempted", st->bpf.preempted },
		{ "filtered.preempted_ns", st->bpf.preempted_ns },
		{ "filtered.state", st->bpf.state },
		{ "filtered.state_ns", st->bpf.state_ns },
		{ "filtered.min", st->bpf.min },
		{ "filtered.min_ns", st->bpf.min_ns },
		{ "filtered.max", st->bpf.max },
		{ "filtered.max_ns", st->bpf.max_ns },
		{ "filtered.owner", st->bpf.owner },
		{ "filtered.hidden", hidden },
		{ "waits.invisible", st->bpf.invisible },
		{ "lost.map_full", st->bpf.agg_full },
		{ "lost.map_full_ns", st->bpf.agg_full_ns },
		{ "lost.no_storage", st->bpf.storage },
		{ "lost.begin_unseen", st->bpf.begin_unseen + st->bpf.hidden - hidden },
		{ "lost.end_unknown", st->bpf.end_unknown },
		{ "waits.end_estimated", st->bpf.end_estimated },
		{ "cpu.samples", st->bpf.cpu_samples },
		{ "cpu.samples_ns", st->bpf.cpu_samples_ns },
		{ "cpu.missed", st->bpf.cpu_missed },
		{ "lost.cpu_samples", st->bpf.cpu_lost + st->samples_lost },
		{ "lost.memory", st->rows_lost },
		{ "lost.memory_ns", st->rows_lost_ns },
		{ "lost.stacks", st->stacks.lost },
		{ "lost.process_events", st->procs.events_lost },
		{ "lost.maps", st->procs.maps_lost },
		{ "maps.refused", st->procs.maps_refused },
		{ "stacks.distinct", st->stacks.stacks },
		{ "stacks.truncated", st->stacks.truncated },
		{ "stacks.sampled", st->bpf.stacks_taken },
		{ "stacks.kept", st->bpf.stacks_kept },
		{ "waits.summed", st->bpf.ring_wait },
		{ "waits.overwritten", st->overwritten },
		{ "waits.overwritten_ns", st->overwritten_ns },
		{ "stacks.kernel_failed", st->bpf.kernel_failed },
		{ "stacks.kernel_walked", st->bpf.kernel_walked },
		{ "stacks.kernel_unready", st->bpf.kernel_unready },
		{ "stacks.kernel_outside", st->bpf.kernel_outside },
		{ "stacks.kernel_interrupt", st->bpf.kernel_interrupt },
		{ "stacks.kernel_unproved", st->bpf.kernel_unproved },
		{ "stacks.kernel_compared", st->bpf.kernel_compared },
		{ "stacks.kernel_differ", st->bpf.kernel_differs },
		{ "stacks.user_recognised", st->bpf.user_recognised },
		{ "stacks.scripts_recognised", st->bpf.scripts_recognised },
		{ "stacks.user_compared", st->bpf.user_compared },
		{ "stacks.user_differ", st->bpf.user_differs },
		{ "stacks.user_failed", st->bpf.user_failed },
		{ "stacks.resent", st->bpf.ring_full },
		{ "names.resent", st->bpf.ring_thread },
		{ "threads.lives_lost", st->bpf.ring_life + st->procs.lives_lost },
		{ "names.kernel_missing", st->stacks.kernel_unnamed },
		{ "files.unread", st->procs.files_unread },
		{ "clock.back", st->bpf.clock_back },
		{ "broker.requests", st->broker.requested },
		{ "broker.lost", st->broker.lost },
		{ "processes", st->procs.images },
		{ "processes.children", st->children },
	};

	counters_add(c, all, ARRAY_LEN(all));
}

static void add_wakers(const struct recorder_stats *st, struct counters *c)
{
	const struct cap_counter all[] = {
		{ "wakers.known", st->wakers_known },
		{ "wakers.missing", st->wakers_missing },
		{ "wakers.no_maps", st->procs.waker_maps_lost },
		{ "wakers.resent", st->bpf.ring_waker },
		{ "wakers.no_storage", st->bpf.waker_storage },
	};

	if (st->wakers)
		counters_add(c, all, ARRAY_LEN(all));
}

/* Stacks walked from a snapshot, and why others were not. */
static void add_snapshots(const struct recorder_stats *st, struct counters *c)
{
	const struct late_stacks_stats *s = &st->snaps;
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

	counters_add(c, all, ARRAY_LEN(all));
}

static void add_tables(const struct recorder_stats *st, struct counters *c)
{
	const struct tableset_stats *t = &st->unwind.tables;
	const struct cap_counter all[] = {
		{ "unwind.walked_late", st->bpf.walked_late },
		{ "unwind.processes", st->unwind.procs },
		{ "unwind.maps_cut", st->unwind.maps_cut },
		{ "unwind.files", t->files },
		{ "unwind.files_failed", t->source.failed },
		{ "unwind.files_bare", t->source.bare },
		{ "unwind.tables", t->space.tables },
		{ "unwind.tables_dropped", t->dropped },
		{ "unwind.tables_cached", t->source.cached },
		{ "unwind.worker_lost", t->source.worker_lost },
		{ "unwind.rows", t->space.rows },
		{ "unwind.bytes", t->space.bytes },
	};

	counters_add(c, all, ARRAY_LEN(all));
}

/* Added only if some frames were in memory for which no file has names. */
static void add_jit(const struct jit_store_stats *st, struct counters *c)
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
		counters_add(c, all, ARRAY_LEN(all));
}

/* Script frames. Added only if a process ran an interpreter. */
static void add_runtimes(const struct recorder_stats *st, struct counters *c)
{
	const struct runtimes_stats *r = &st->runtimes;
	const struct cap_counter all[] = {
		{ "scripts.processes", r->processes },
		{ "scripts.refused", r->refused_processes },
		{ "scripts.functions", r->functions },
		{ "scripts.frames", r->frames },
		{ "scripts.unnamed", r->unnamed },
		{ "scripts.resent", st->bpf.script_ring },
		{ "scripts.no_thread", st->bpf.script_thread },
		{ "scripts.no_memory", st->bpf.script_memory },
		{ "scripts.mismatch", st->bpf.script_mismatch },
	};

	if (r->processes || r->refused_processes)
		counters_add(c, all, ARRAY_LEN(all));
	c->runtimes = r->summary;
}

/* Names stored for readers without the files. */
void counters_add_names(struct counters *c, const struct name_requests_stats *st)
{
	const struct cap_counter all[] = {
		{ "names.stored", st->stored },
		{ "names.plain", st->plain },
		{ "names.files", st->files },
		{ "names.unresolved", st->unresolved },
		{ "names.late", st->late },
	};

	counters_add(c, all, ARRAY_LEN(all));
}

void record_stats_counters(const struct recorder_stats *st, struct counters *ret)
{
	*ret = (struct counters){ .user = st->user,
		.cpu = st->cpu,
		.no_waits = st->no_waits,
		.degraded = st->degraded,
		.privileges = st->privileges,
		.runtime_flags = st->runtime_flags };
	add_waits(st, ret); /* begins with waits.seen and waits.seen_ns */
	add_unwritten(ret, false);
	add_unwritten(ret, true);
	add_wakers(st, ret);
	add_jit(&st->jit, ret);
	add_runtimes(st, ret);
	if (st->by_name)
		counters_add_names(ret, &st->names);
	if (st->by_table) {
		add_tables(st, ret);
		add_snapshots(st, ret);
	}
	counters_hint(ret, st->ptrace, true, st->deepest);
	counters_because(ret, "filtered.hidden", st->unseen);
	counters_because(ret, "lost.begin_unseen", st->unseen);
	counters_because(ret, "unwind.files_failed", st->unwind.tables.source.why);
	counters_because(ret, "unwind.worker_lost", st->unwind.tables.source.worker_why);
}

void record_text_progress(struct buf *b, const struct recorder_stats *st)
{
	struct counters c;

	record_stats_counters(st, &c);
	counters_put_progress(b, &c, st->now_ns - st->start_ns);
}

static void put_command(struct buf *b, const struct command *c)
{
	if (!c->ended)
		buftext_printf(b, "  the command still runs, as process %d\n", (int)c->pid);
	else if (WIFSIGNALED(c->status))
		buftext_printf(b, "  the command was ended by signal %d (%s)\n", WTERMSIG(c->status),
			strsignal(WTERMSIG(c->status)));
	else
		buftext_printf(b, "  the command's exit status: %d\n", WEXITSTATUS(c->status));
}

void record_text_head(struct buf *b, const struct counters *c, const struct record_text_report *reported,
	uint64_t ns, uint64_t bytes)
{
	counters_put_head(b, c, reported->name, ns, reported->path, bytes);
	if (reported->command)
		put_command(b, reported->command);
}

void record_text_summary(
	struct buf *b, const struct recorder_stats *st, const struct record_text_report *reported)
{
	struct counters c;

	record_stats_counters(st, &c);
	record_text_head(b, &c, reported, st->now_ns - st->start_ns, st->bytes);
	counters_put(b, &c, reported->verbose);
}
