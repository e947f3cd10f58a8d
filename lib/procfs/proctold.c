/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/proctold.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

uint64_t proctold_lost(const struct proctold *t)
{
	return t->skipped + t->unread + t->rows_lost + t->procs.maps_lost + t->looker.lost + t->opener.lost;
}

/* A lag at the end can make it negative. */
static uint64_t whole(uint64_t sum)
{
	return (int64_t)sum < 0 ? 0 : sum;
}

static void write_all(struct capwrite *w, const struct cap_counter *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		capwrite_counter(w, &all[i]);
}

static void write_waits(const struct proctold *t, struct capwrite *w)
{
	const struct cap_counter all[] = {
		{ "waits.seen", t->seen.n },
		{ "waits.seen_ns", t->seen.ns },
		{ "waits.recorded", t->recorded.n },
		{ "waits.recorded_ns", t->recorded.ns },
		{ "filtered.preempted", t->preempted.n },
		{ "filtered.preempted_ns", t->preempted.ns },
		{ "filtered.state", t->state.n },
		{ "filtered.state_ns", t->state.ns },
		{ "filtered.min", t->min.n },
		{ "filtered.min_ns", t->min.ns },
		{ "filtered.max", t->max.n },
		{ "filtered.max_ns", t->max.ns },
		{ "lost.threads", t->skipped },
		{ "lost.threads_unread", t->unread },
		{ "lost.memory", t->rows_lost },
		{ "lost.maps", t->procs.maps_lost },
		{ "looker.asked", t->looker.asked },
		{ "looker.lost", t->looker.lost },
		{ "opener.asked", t->opener.asked },
		{ "opener.lost", t->opener.lost },
		{ "maps.refused", t->procs.maps_refused },
		{ "stacks.distinct", t->stacks.stacks },
		{ "stacks.truncated", t->stacks.truncated },
		{ "names.kernel_missing", t->stacks.kernel_unnamed },
		{ "files.unread", t->procs.files_unread },
		{ "processes", t->procs.images },
	};

	write_all(w, all, ARRAY_LEN(all));
}

static void write_looks(const struct proctold *t, struct capwrite *w)
{
	const struct cap_counter all[] = {
		{ "procfs.looks", t->looks },
		{ "procfs.looks_late", t->late },
		{ "procfs.looks_left_out", t->left_out },
		{ "procfs.look_ns", t->look_ns },
		{ "procfs.look_max_ns", t->look_max_ns },
		{ "procfs.threads", t->threads },
		{ "procfs.threads_ended", t->ended },
		{ "procfs.unchecked", t->unchecked },
		{ "procfs.estimated_ns", t->sums.estimated_ns },
		{ "procfs.schedstat_ns", whole(t->sums.schedstat_ns) },
		{ "procfs.unsettled_ns", t->sums.unsettled_ns },
		{ "procfs.unseen", t->unseen.n },
		{ "procfs.unseen_ns", t->unseen.ns },
		{ "procfs.no_syscall", t->no_syscall },
		{ "procfs.no_stack", t->no_stack },
		{ "procfs.no_wait_channel", t->no_wchan },
		{ "procfs.names_overflow", t->names_overflow },
		{ "procfs.stops", t->stops },
		{ "procfs.stopped_ns", t->stopped_ns },
		{ "procfs.longest_stop_ns", t->longest_stop_ns },
		{ "procfs.not_walked", t->no_user_walk },
	};

	write_all(w, all, ARRAY_LEN(all));
}

/* Waits by the end of their user stack, as in every mode. */
static void write_user(const struct proctold *t, struct capwrite *w)
{
	char name[64];

	for (unsigned int v = CAP_COMPLETE; v <= CAP_TRUNCATED; v++) {
		snprintf(name, sizeof(name), "user.%s", capture_verdict_name(v));
		capwrite_counter(w, &(struct cap_counter){ name, t->user.verdicts[v] });
	}
	for (unsigned int i = 0; i < CAP_R_COUNT; i++) {
		snprintf(name, sizeof(name), "user.short.%s", capture_reason_name(i));
		if (t->user.reasons[i])
			capwrite_counter(w, &(struct cap_counter){ name, t->user.reasons[i] });
	}
}

void proctold_write(const struct proctold *t, struct capwrite *w)
{
	const struct cap_counter names[] = {
		{ "names.stored", t->names.stored },
		{ "names.plain", t->names.plain },
		{ "names.files", t->names.files },
		{ "names.unresolved", t->names.unresolved },
		{ "names.late", t->names.late },
	};

	write_waits(t, w);
	write_looks(t, w);
	write_user(t, w);
	if (t->by_name)
		write_all(w, names, ARRAY_LEN(names));
}

/* --- in words --- */

static void put_seconds(struct buf *b, const char *before, uint64_t ns, const char *after)
{
	buftext_str(b, before);
	rectext_seconds(b, ns);
	buftext_str(b, after);
}

static void put_count(struct buf *b, const char *before, uint64_t n, const char *after)
{
	buftext_str(b, before);
	buftext_dec(b, n, 1);
	buftext_str(b, after);
}

void proctold_progress(struct buf *b, const struct proctold *t)
{
	uint64_t tenths = (t->now_ns - t->start_ns) / 100000000;

	buftext_printf(b, "%" PRIu64 ".%u s", tenths / 10, (unsigned int)(tenths % 10));
	put_count(b, "  ", t->looks, " looks");
	put_count(b, "  about ", t->recorded.n, " waits");
	put_count(b, "  ", t->stacks.stacks, " stacks");
	put_count(b, "  ", t->procs.images, " processes");
	put_count(b, "  ", proctold_lost(t), " lost");
}

static void put_checked(struct buf *b, const struct proctold *t)
{
	put_count(b, "  samples, not exact waits: ", t->looks, " looks at ");
	put_count(b, "", t->hz, " Hz, ");
	if (t->threads == t->unchecked) {
		buftext_str(b, "not checked: there is no schedstat\n");
		return;
	}
	put_seconds(b, "off-CPU estimated ", t->sums.estimated_ns, " s, ");
	put_seconds(b, "by schedstat ", whole(t->sums.schedstat_ns), " s\n");
}

/* What the looks cost, and how many could not be made. */
static void put_looks(struct buf *b, const struct proctold *t, bool verbose)
{
	uint64_t elapsed = MAX(t->now_ns - t->start_ns, 1);

	if (t->left_out)
		put_count(b, "  ", t->left_out,
			" looks were left out: there was no time for them, so the rate went down\n");
	if (verbose || t->late)
		put_count(b, "  ", t->late, " looks came late\n");
	if (!verbose && !t->left_out)
		return;
	put_count(b, "  a look took ", t->look_ns / MAX(t->looks, 1) / 1000, " us of CPU time on average, ");
	put_count(b, "", t->look_max_ns / 1000, " us at most, ");
	put_count(b, "", t->look_ns * 100 / elapsed, " % of a CPU\n");
}

static void put_filtered(struct buf *b, const struct proctold *t)
{
	const struct {
		const char *what;
		const struct proctold_sum *sum;
	} rows[] = { { "runnable, for want of a CPU (--preempted records them)", &t->preempted },
		{ "in another state than --state", &t->state },
		{ "shorter than --min, as estimated", &t->min },
		{ "longer than --max, as estimated", &t->max } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!rows[i].sum->n)
			continue;
		put_count(b, "  left out: ", rows[i].sum->n, " waits, ");
		put_seconds(b, "", rows[i].sum->ns, " s, ");
		buftext_str(b, rows[i].what);
		buftext_str(b, "\n");
	}
}

static void put_limits(struct buf *b, const struct proctold *t, bool verbose)
{
	if (verbose || t->unseen.n) {
		put_count(b, "  ", t->unseen.n, " waits of ");
		put_seconds(b, "", t->unseen.ns, " s were between looks: a higher -F sees more of them\n");
	}
	if (verbose || t->sums.unsettled_ns)
		put_seconds(b, "  ", t->sums.unsettled_ns,
			" s off the CPU are in no wait: what running threads did last is not known\n");
	if (verbose || t->ended)
		put_count(b, "  ", t->ended, " threads ended: since their last look they were not seen\n");
	if (t->stops) {
		put_count(b, "  --ptrace stopped threads for a moment: ", t->stops, " times, ");
		put_count(b, "", t->longest_stop_ns / 1000, " us at most\n");
	}
	if (t->no_user_walk) {
		put_count(b, "  ", t->no_user_walk, " times no user stack could be walked: ");
		buftext_escaped(b, t->walk_why, TEXT_LINE);
		buftext_str(b, "\n");
	}
	if (t->stacks.truncated)
		put_count(b, "  ", t->stacks.truncated,
			" stacks were cut: --depth raises the limit, for kernel "
			"stacks up to 64\n");
	if (t->procs.files_unread)
		put_count(b, "  ", t->procs.files_unread,
			" mapped files could not be read: frames in them have no names\n");
	if (t->by_name && t->names.late)
		put_count(b, "  ", t->names.late,
			" places in files have no name stored: no time was left to look them up\n");
	if (capends_waits(&t->user)) {
		buftext_str(b, "  user stacks: ");
		capends_put(b, &t->user);
		buftext_str(b, "\n");
	}
}

/* What may not be read, each once, with what mends it. */
static void put_refused(struct buf *b, const struct proctold *t)
{
	if (t->no_syscall)
		put_count(b, "  degraded: system call, wait channel and program counter of ", t->no_syscall,
			" threads are hidden: they are another user's, or protected; it takes "
			"CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH\n");
	if (t->no_stack)
		put_count(b, "  degraded: kernel stacks of ", t->no_stack,
			" threads are names alone: /proc/PID/stack takes CAP_SYS_ADMIN\n");
	if (t->procs.maps_refused)
		put_count(b, "  degraded: user frames of ", t->procs.maps_refused,
			" processes have no names: reading their maps takes CAP_SYS_PTRACE\n");
	if (t->unchecked)
		put_count(b, "  degraded: ", t->unchecked,
			" threads have no schedstat: their waits are by samples alone; it takes a kernel "
			"with "
			"CONFIG_SCHED_INFO\n");
	if (!t->degraded[0])
		return;
	buftext_str(b, "  degraded: ");
	buftext_escaped(b, t->degraded, TEXT_LINE);
	buftext_str(b, "\n");
}

static void put_lost(struct buf *b, const struct proctold *t, bool all)
{
	const struct {
		const char *what;
		uint64_t n;
	} rows[] = { { " threads: more than can be looked at\n", t->skipped },
		{ " threads: /proc/PID/task/TID/status or stat could not be read\n", t->unread },
		{ " waits: the recorder had no memory\n", t->rows_lost },
		{ " processes without mappings: they had ended\n", t->procs.maps_lost },
		{ " looks without privileges: the process that looks at threads had ended\n",
			t->looker.lost },
		{ " files and maps not opened: the process that opens them had ended\n", t->opener.lost } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].n || all)
			put_count(b, "  lost: ", rows[i].n, rows[i].what);
	if (!proctold_lost(t) && !all)
		buftext_str(b, "  lost: nothing\n");
}

void proctold_summary(struct buf *b, const struct proctold *t, const struct rectext_told *told)
{
	const struct rectext_head head = { .ns = t->now_ns - t->start_ns,
		.waits = t->recorded.n,
		.waits_ns = t->recorded.ns,
		.stacks = t->stacks.stacks,
		.processes = t->procs.images,
		.bytes = t->bytes,
		.about = true };

	rectext_head(b, &head, told);
	if (told->command)
		rectext_command(b, told->command);
	put_checked(b, t);
	put_looks(b, t, told->verbose);
	put_filtered(b, t);
	put_limits(b, t, told->verbose);
	if (told->verbose)
		rectext_privileges(b, t->privileges);
	put_refused(b, t);
	put_lost(b, t, told->verbose);
}
