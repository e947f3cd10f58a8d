/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statistics of a recording as counters of a capture and as text. */
#include "base/tap.h"
#include "capture/reader.h"
#include "record/counters.h"

#include <string.h>

static struct recorder_stats stats(void)
{
	struct recorder_stats st = { .start_ns = 1000000000,
		.now_ns = 3345600000,
		.bytes = 4242,
		.place = "f",
		.waits = 100,
		.waits_ns = 7000499999,
		.bpf = { .seen = 110, .preempted = 10, .preempted_ns = 1500000000, .walked_late = 3 },
		.procs = { .images = 5 },
		.stacks = { .stacks = 9 },
		.by_table = true,
		.unwind = { .procs = 4,
			.maps_cut = 2,
			.tables = { .files = 8,
				.dropped = 6,
				.source = { .failed = 1,
					.bare = 2,
					.cached = 3,
					.worker_lost = 1,
					.worker_why = "c\nd",
					.why = "a\nb" },
				.space = { .tables = 5, .rows = 1000, .bytes = 65536 } } },
		.degraded = "" };

	cap_outcomes_add(&st.user, VERDICT_COMPLETE, REASON_NONE, 90);
	cap_outcomes_add(&st.user, VERDICT_STOPPED, REASON_NO_ROW, 7);
	cap_outcomes_add(&st.user, VERDICT_UNVERIFIED, REASON_NONE, 2);
	cap_outcomes_add(&st.user, VERDICT_TRUNCATED, REASON_NONE, 1);
	return st;
}

static struct cap_reader *written(const struct recorder_stats *st)
{
	char path[] = "/tmp/unit-record_stats.XXXXXX";
	struct cap_writer *w = NULL;
	struct cap_reader *c = NULL;
	struct counters counters;
	int fd = mkstemp(path);

	close(fd);
	if (cap_writer_open(path, true, &w, NULL) != 0)
		abort();
	record_stats_counters(st, &counters);
	counters_write(&counters, w);
	if (cap_writer_finish(w, &(struct cap_trailer){ .why = "" }, NULL) != 0 ||
		cap_reader_load(path, &c, NULL) != 0)
		abort();
	cap_writer_close(w);
	unlink(path);
	return c;
}

static bool has(const struct cap_reader *c, const char *name)
{
	for (size_t i = 0; i < c->n_counters; i++)
		if (strcmp(c->counters[i].name, name) == 0)
			return true;
	return false;
}

static void test_counters(struct tap *t)
{
	static const struct {
		const char *name;
		uint64_t value;
	} want[] = { { "waits.recorded", 100 }, { "filtered.preempted_ns", 1500000000 },
		{ "user.complete", 90 }, { "user.unverified", 2 }, { "user.truncated", 1 },
		{ "user.short.no-row", 7 }, { "unwind.walked_late", 3 }, { "unwind.processes", 4 },
		{ "unwind.maps_cut", 2 }, { "unwind.files", 8 }, { "unwind.files_failed", 1 },
		{ "unwind.files_bare", 2 }, { "unwind.tables", 5 }, { "unwind.tables_dropped", 6 },
		{ "unwind.tables_cached", 3 }, { "unwind.worker_lost", 1 }, { "unwind.rows", 1000 },
		{ "unwind.bytes", 65536 } };
	struct recorder_stats st = stats();
	struct cap_reader *c = written(&st);

	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		tap_eq_u64(t, cap_reader_counter(c, want[i].name), want[i].value, want[i].name);
	tap_ok(t, !has(c, "user.short.loop"), "a reason without stacks has no counter");
	cap_reader_free(c);
	st.by_table = false;
	c = written(&st);
	tap_ok(t, has(c, "user.complete") && !has(c, "unwind.tables"),
		"without unwind tables there are no counters for them");
	cap_reader_free(c);
}

/* The summary of ST as a string. Release with free(3). */
static char *reported(const struct recorder_stats *st, const struct command *command, bool verbose)
{
	struct record_text_report how = {
		.name = "rec", .path = "a\033b", .command = command, .verbose = verbose
	};
	struct buf b = { 0 };

	record_text_summary(&b, st, &how);
	buf_put(&b, "", 1);
	return (char *)b.p;
}

static void says(struct tap *t, const char *text, const char *want, const char *name)
{
	if (!tap_ok(t, strstr(text, want) != NULL, "%s", name))
		tap_diag("got:\n%s", text);
}

static void test_summary(struct tap *t)
{
	struct recorder_stats st = stats();
	_cleanup_free_ char *text = reported(&st, NULL, false);

	says(t, text,
		"rec: 2.346 s, 100 waits of 7.000 s in all, 9 stacks, 5 processes; 4242 bytes in 'a\\x1bb'\n",
		"the first line has the totals and the file name, escaped");
	says(t, text, "\n  not recorded: 10 waits, 1.500 s: runnable throughout (--preempted records them)\n",
		"the summary reports what was not recorded, and why");
	says(t, text, "\n  user stacks: 90.00 % of 100 waits complete; 2 unverified; 1 truncated; 7 no-row\n",
		"the summary reports how the user stacks ended");
	tap_ok(t, !strstr(text, "walked later"), "without copied stacks they are not reported");
	says(t, text, "\n  1 file: no unwind table could be made, most recently: a\\x0ab\n",
		"failed tables are reported with a reason, in which newlines are escaped");
	says(t, text, "\n  1 process: ended or not started, to make unwind tables, most recently: c\\x0ad\n",
		"the summary reports that no process makes tables any more, and why");
	says(t, text,
		"\n  6 unwind tables: no room in memory (--unwind-memory raises the limit, except in mode "
		"procfs)\n",
		"tables without room are reported with a remedy");
	says(t, text, "\n  lost: nothing\n", "the summary reports that nothing was lost");
	says(t, text, "\n  2 mappings: beyond what a process can have, or no room in memory\n",
		"mappings without room are reported");
	tap_ok(t, !strstr(text, "in use"), "without -v the number of tables is not reported");
	st.bpf.snapshots = 9;
	st.snaps.complete = 6;
	st.snaps.cut = 1;
	free(text);
	text = reported(&st, NULL, false);
	says(t, text, "\n  walked later, from copies of the stack: 7 of 9\n",
		"the summary reports how many stacks were walked later");
}

static void test_verbose(struct tap *t)
{
	struct recorder_stats st = stats();
	_cleanup_free_ char *text = NULL;

	st.degraded = "user stacks by frame pointer: no \033";
	st.bpf.agg_full = 4;
	st.procs.files_unread = 3;
	text = reported(&st, NULL, true);
	says(t, text,
		"\n  5 unwind tables: in use\n  1000 rows: in unwind tables\n"
		"  65536 bytes: for unwind tables and mappings in the kernel\n"
		"  4 process images: with mappings for the unwinder\n  8 files: read for unwind tables\n"
		"  3 unwind tables: from the cache\n  2 files: without unwind information\n",
		"with -v the summary reports the tables");
	says(t, text, "\n  3 mapped files: not readable: their frames have no names and no unwind table\n",
		"unreadable files are reported with the effect");
	says(t, text, "\n  degraded: user stacks by frame pointer: no \\x1b\n",
		"the summary reports what is degraded");
	says(t, text, "\n  lost: 4 waits: the aggregation map was full\n",
		"a loss is reported with its cause");
	says(t, text, "\n  lost: 0 waits: no task storage\n", "with -v causes without losses are reported");
	tap_ok(t, !strstr(text, "nothing"), "after a loss the summary does not report that nothing was lost");
}

static void test_command(struct tap *t)
{
	struct recorder_stats st = stats();
	struct command c = { .pid = 77 };
	_cleanup_free_ char *runs = reported(&st, &c, false), *ended = NULL, *killed = NULL;

	says(t, runs, "\n  the command still runs, as process 77\n", "a command that still runs is reported");
	c.ended = true;
	c.status = 7 << 8;
	ended = reported(&st, &c, false);
	says(t, ended, "\n  the command's exit status: 7\n", "the exit status of a command is reported");
	c.status = 9;
	killed = reported(&st, &c, false);
	says(t, killed, "\n  the command was ended by signal 9 (Killed)\n",
		"the signal that ended a command is reported");
}

static void test_little(struct tap *t)
{
	struct recorder_stats st = { .degraded = "" };
	_cleanup_free_ char *text = reported(&st, NULL, false);
	struct buf b = { 0 };

	tap_eq_str(t, text,
		"rec: 0.000 s, 0 waits of 0.000 s in all, 0 stacks, 0 processes; 0 bytes in 'a\\x1bb'\n"
		"  lost: nothing\n",
		"a recording of nothing is reported in two lines");
	st = stats();
	st.bpf.storage = 8;
	record_text_progress(&b, &st);
	buf_put(&b, "", 1);
	tap_eq_str(t, (const char *)b.p, "2.3 s  100 waits  9 stacks  5 processes  8 lost",
		"the progress line has the totals and the losses");
	buf_free(&b);
}

int main(void)
{
	struct tap t = { 0 };

	test_counters(&t);
	test_summary(&t);
	test_verbose(&t);
	test_command(&t);
	test_little(&t);
	return tap_done(&t);
}
