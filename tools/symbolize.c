/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cli.h"
#include "base/clock.h"
#include "base/out.h"
#include "base/text.h"
#include "capture/counters.h"
#include "capture/reader.h"
#include "symbols/kinds.h"
#include "symbols/missing.h"
#include "symbols/print.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define PROGRESS_AFTER_NS UINT64_C(1000000000)
#define PROGRESS_EVERY_NS UINT64_C(200000000)

static const char *const formats[] = {
	[WAIT_TEXT] = "text", [WAIT_JSON] = "json", [WAIT_PERF] = "perf", [WAIT_TABLES] = "tables", NULL
};

enum { EVENTS_NO, EVENTS_ALWAYS, EVENTS_AUTO };

static const char *const whens[] = {
	[EVENTS_NO] = "never", [EVENTS_ALWAYS] = "always", [EVENTS_AUTO] = "auto", NULL
};

struct opts {
	const char *path, *symfs, *vmlinux, *kinds;
	struct cli_list pids, tids; /* uint32_t */
	struct cli_list comms, debug_dirs; /* const char * */
	uint32_t jobs;
	uint64_t memory_bytes;
	enum wait_format format;
	int events; /* EVENTS_... */
	bool live, lines, scheduler, no_inline, no_demangle, no_cache, print_kinds, stats, quiet, verbose;
};

static const struct cli_option options[] = {
	{ 'p', "pid", "PID", "only this process (1,2,3: these; may be repeated, as the next two)",
		CLI_NUMBERS(struct opts, pids, uint32_t), .commas = true },
	{ 't', "tid", "TID", "only this thread (likewise)", CLI_NUMBERS(struct opts, tids, uint32_t),
		.commas = true },
	{ 'c', "comm", "NAME", "only threads of this name (likewise)", CLI_TEXTS(struct opts, comms),
		.commas = true },
	{ 0, "format", "FORMAT",
		"text: perf script's grammar (default); json: one JSON object a line, with every field; "
		"perf: for viewers that read perf script's text; "
		"tables: JSON for stackexport, with each frame, stack and thread once",
		CLI_WORD(struct opts, format, formats) },
	{ 0, "events", "WHEN",
		"each wait by itself, in order of time (recorded with --events); auto: if there are any, "
		"else their sums",
		CLI_WORD(struct opts, events, whens), .otherwise = "always" },
	{ 0, "live", NULL, "print what a recorder writes while it writes it (offcpu-record -o - | ...)",
		CLI_FLAG(struct opts, live) },
	{ 0, "lines", NULL, "source lines, where debug information has them (JSON: always)",
		CLI_FLAG(struct opts, lines) },
	{ 0, "scheduler", NULL, "frames of the kernel's scheduler itself (JSON: always)",
		CLI_FLAG(struct opts, scheduler) },
	{ 0, "no-inline", NULL, "omit inlined functions", CLI_FLAG(struct opts, no_inline) },
	{ 0, "no-demangle", NULL, "C++, Rust and D names as the symbol table has them",
		CLI_FLAG(struct opts, no_demangle) },
	{ 0, "symfs", "DIR", "look for binaries under DIR too", CLI_DIR(struct opts, symfs) },
	{ 0, "debug-dir", "DIR", "look for debug files under DIR first (may be repeated)",
		CLI_DIRS(struct opts, debug_dirs) },
	{ 0, "vmlinux", "FILE", "the kernel's file with debug information (default: search)",
		CLI_FILE(struct opts, vmlinux) },
	{ 'j', "jobs", "N", "processes that read symbols side by side (default: one a CPU)",
		CLI_NUMBER(struct opts, jobs), .min = 1, .max = 1024 },
	{ 0, "max-memory", "SIZE", "memory of all of these together (default 2G; K, M, G)",
		CLI_SIZE(struct opts, memory_bytes), .min = UINT64_C(64) << 20, .max = UINT64_C(1) << 50 },
	{ 0, "no-cache", NULL, "read all debug information again, and keep nothing of it",
		CLI_FLAG(struct opts, no_cache) },
	{ 0, "kinds", "FILE", "rules for kinds of waits, which come before the usual ones",
		CLI_FILE(struct opts, kinds) },
	{ 0, "print-kinds", NULL, "print the usual rules", CLI_FLAG(struct opts, print_kinds) },
	{ 0, "stats", NULL, "say where names came from and what took how long",
		CLI_FLAG(struct opts, stats) },
	{ 'q', "quiet", NULL, "no warnings", CLI_FLAG(struct opts, quiet) },
	{ 'v', "verbose", NULL, "say for each file whether it was used", CLI_FLAG(struct opts, verbose) },
	{ .arg = "FILE", CLI_FILE(struct opts, path) },
};

static int check(const struct cli *c, void *opts)
{
	struct opts *o = opts;

	if (!o->path && !o->print_kinds && isatty(STDIN_FILENO))
		return cli_usage(c, "no FILE given, and standard input is a terminal");
	if (o->lines && o->format == WAIT_PERF)
		return cli_usage(c, "--lines and --format=perf exclude one another");
	if (o->events && o->format == WAIT_PERF)
		return cli_usage(c, "--events and --format=perf exclude one another: its times are made up");
	if (o->live && (o->format == WAIT_PERF || o->format == WAIT_TABLES))
		return cli_usage(c, "--live and --format=%s exclude one another", formats[o->format]);
	if (o->live && o->stats)
		return cli_usage(c, "--live and --stats exclude one another");
	o->path = o->path ? o->path : "-";
	return CLI_OK;
}

static const struct cli cli = {
	.name = "symbolize",
	.about = "Name the addresses of a capture; print its waits in perf script's grammar.",
	CLI_OPTIONS(options),
	.check = check,
};

struct job {
	const struct opts *o;
	struct kinds *kinds;
	struct cap_reader *c;
	struct resolve *r;
	struct wait_printer list;
	uint32_t *record_of; /* by sample; CAPTURE_NONE = it is not selected. NULL unless waits or flushes are
			      */
};

static void forget_names(struct job *j)
{
	free(j->list.records);
	free(j->list.wakers);
	free(j->list.turns);
	free(j->record_of);
	stackids_free(j->list.stacks);
	resolve_close(j->r);
	j->list.records = NULL;
	j->list.wakers = NULL;
	j->list.turns = NULL;
	j->list.stacks = NULL;
	j->list.n_records = j->list.n_turns = 0;
	j->record_of = NULL;
	j->r = NULL;
}

static void job_free(struct job *j)
{
	forget_names(j);
	kinds_free(j->kinds);
	cap_reader_free(j->c);
}

static bool has_number(const struct cli_list *s, uint32_t v)
{
	for (size_t i = 0; i < s->n; i++)
		if (((const uint32_t *)s->p)[i] == v)
			return true;
	return s->n == 0;
}

static bool is_selected(const struct job *j, const struct cap_sample *s)
{
	const struct opts *o = j->o;
	uint32_t ns_tid;
	const char *comm;

	if (!has_number(&o->pids, j->c->procs[s->proc].tgid) || !has_number(&o->tids, s->tid))
		return false;
	if (!o->comms.n)
		return true;
	comm = wait_printer_comm(j->c, s, &ns_tid);
	for (size_t i = 0; i < o->comms.n; i++)
		if (strcmp(((const char *const *)o->comms.p)[i], comm) == 0)
			return true;
	return false;
}

static int by_time(const void *a, const void *b)
{
	const struct wait_printer_record *x = a, *y = b;
	int c = CMP(x->last_ns, y->last_ns);

	return c ? c : CMP(x->sample, y->sample);
}

static void add_total(struct job *j, const struct cap_sample *s, uint64_t count, uint64_t total_ns)
{
	struct perf_text_totals *t = &j->list.totals;

	if (s->flags & CAPTURE_SAMPLE_ON_CPU) {
		t->samples += count;
		return;
	}
	t->waits += count;
	t->total_ns += total_ns;
}

static int turn_by_time(const void *a, const void *b)
{
	const struct wait_printer_turn *x = a, *y = b;
	int c = CMP(x->time_ns, y->time_ns);

	return c ? c : CMP(x->wait, y->wait);
}

/* Make a record of each of the requested samples, whether it has waits of its own or not. */
static int select_records(struct job *j, struct err *e)
{
	const struct cap_reader *c = j->c;

	j->record_of = calloc(c->n_samples + 1, sizeof(*j->record_of));
	if (!j->record_of)
		return err_nomem(e, "waits");
	for (size_t i = 0; i < c->n_samples; i++) {
		j->record_of[i] = CAPTURE_NONE;
		if (!is_selected(j, &c->samples[i]))
			continue;
		j->record_of[i] = (uint32_t)j->list.n_records;
		j->list.records[j->list.n_records++] =
			(struct wait_printer_record){ .sample = &c->samples[i] };
	}
	return 0;
}

/*
 * What to print of the records: sums, and the waits that are by themselves, in order of time. Each
 * distinct stack is named once, for its record.
 */
static int make_turns(struct job *j, struct err *e)
{
	const struct cap_reader *c = j->c;
	struct wait_printer_turn *t = calloc(c->n_samples + c->n_waits + 1, sizeof(*t));

	free(j->list.turns);
	j->list.turns = t;
	if (!t)
		return err_nomem(e, "waits");
	for (size_t i = 0; i < c->n_samples; i++) {
		const struct cap_sample *s = &c->samples[i];

		if (j->record_of[i] == CAPTURE_NONE)
			continue;
		j->list.records[j->record_of[i]].sample = s;
		if (!s->count)
			continue;
		*t++ = (struct wait_printer_turn){ s->last_ns, j->record_of[i], CAPTURE_NONE };
		add_total(j, s, s->count, s->total_ns);
	}
	for (uint32_t i = 0; i < c->n_waits && c->waits; i++) {
		const struct cap_wait *w = &c->waits[i];

		if (j->record_of[w->key] == CAPTURE_NONE)
			continue;
		*t++ = (struct wait_printer_turn){ w->start_ns, j->record_of[w->key], i };
		add_total(j, &c->samples[w->key], 1, w->total_ns);
	}
	j->list.n_turns = (size_t)(t - j->list.turns);
	qsort(j->list.turns, j->list.n_turns, sizeof(*j->list.turns), turn_by_time);
	j->list.totals.records = j->list.n_turns;
	return 0;
}

/* Select the requested samples, in order of time. */
static int select_samples(struct job *j, struct err *e)
{
	const struct cap_reader *c = j->c;
	bool sorted = true;

	j->list.c = c;
	j->list.r = j->r;
	j->list.wakers = calloc(c->n_wakers + 1, sizeof(*j->list.wakers));
	j->list.records = calloc(c->n_samples + 1, sizeof(*j->list.records));
	if (!j->list.records || !j->list.wakers)
		return err_nomem(e, "samples");
	j->list.totals.lost = perf_text_lost(c);
	if (j->o->events == EVENTS_ALWAYS || (j->o->events && c->n_waits) || j->o->live) {
		int rc = select_records(j, e);

		return rc ? rc : make_turns(j, e);
	}
	for (size_t i = 0; i < c->n_samples; i++) {
		const struct cap_sample *s = &c->samples[i];

		if (!is_selected(j, s))
			continue;
		sorted = sorted &&
			 (!j->list.n_records || j->list.records[j->list.n_records - 1].last_ns <= s->last_ns);
		j->list.records[j->list.n_records++] =
			(struct wait_printer_record){ .last_ns = s->last_ns, .sample = s };
		add_total(j, s, s->count, s->total_ns);
	}
	if (!sorted)
		qsort(j->list.records, j->list.n_records, sizeof(*j->list.records), by_time);
	j->list.totals.records = j->list.n_records;
	return 0;
}

/* Wakers of waits that are not selected cost little. */
static int resolve_wakers(struct job *j)
{
	int rc = 0;

	for (size_t i = 0; i < j->c->n_wakers && rc == 0; i++) {
		const struct cap_waker *w = &j->c->wakers[i];
		const struct cap_sample at = { .proc = w->proc,
			.kstack = w->kstack,
			.ustack = w->ustack,
			.first_ns = w->first_ns,
			.last_ns = w->first_ns };

		rc = stackids_kernel(j->list.stacks, &at, &j->list.wakers[i].kernel);
		if (rc == 0 && w->proc != CAPTURE_NONE)
			rc = stackids_user(j->list.stacks, &at, &j->list.wakers[i].user);
	}
	return rc;
}

/* Resolve every address before the first line: the header names the files that were not used. */
static int resolve_all(struct job *j, struct err *e)
{
	int rc = stackids_new(j->c, j->r, &j->list.stacks);

	for (size_t i = 0; i < j->list.n_records && rc == 0; i++) {
		struct wait_printer_record *r = &j->list.records[i];

		rc = stackids_kernel(j->list.stacks, r->sample, &r->kernel);
		rc = rc ? rc : stackids_user(j->list.stacks, r->sample, &r->user);
	}
	rc = rc ? rc : resolve_wakers(j);
	rc = rc ? err_nomem(e, "frames") : resolve_run(j->r, e);
	return rc ? rc : kinds_find(j->kinds, &j->list, e);
}

static int print_all(struct job *j, struct err *e)
{
	struct out out;
	int rc = out_init(&out, STDOUT_FILENO, e);

	if (rc)
		return rc;
	j->list.format = j->o->format;
	j->list.lines = j->o->lines;
	j->list.scheduler = j->o->scheduler;
	rc = wait_printer_print(&j->list, &out, e);
	rc = rc ? rc : out_flush(&out, e);
	out_free(&out);
	return rc;
}

static void print_file(const char *path, const struct modules_file *f)
{
	if (f->problem)
		cli_warn(&cli, "'%s' is not used: it %s", path, f->problem);
	else if (f->debug)
		cli_warn(&cli, "'%s' is used: %" PRIu64 " symbols, debug file '%s'", path, f->symbols,
			f->debug);
	else
		cli_warn(&cli, "'%s' is used: %" PRIu64 " symbols", path, f->symbols);
	if (f->missed)
		cli_warn(&cli, "'%s' has a debug file that is not used: %s", path, f->missed);
	if (f->message)
		cli_warn(&cli, "'%s' is used as far as it goes: %s", path, f->message);
}

/* MODULE "" = the kernel itself. */
static void print_kernel_file(const char *module, const struct modules_file *f)
{
	char who[256] = "the kernel";

	if (*module)
		snprintf(who, sizeof(who), "kernel module '%s'", module);
	if (f->debug)
		cli_warn(&cli, "%s's debug information is used: '%s'%s", who, f->debug,
			!*module || f->proven
				? ""
				: " (of the same release; captures have no build ID of modules)");
	if (f->problem || f->missed)
		cli_warn(&cli, "%s has no lines: %s", who, f->problem ? f->problem : f->missed);
	if (f->message)
		cli_warn(&cli, "%s's file is used as far as it goes: %s", who, f->message);
}

static void print_files(const struct job *j)
{
	struct modules_file f;
	const char *part;
	size_t unused = 0;

	for (uint32_t i = 0; i < j->c->n_files; i++) {
		if (!resolve_file(j->r, i, &f))
			continue;
		unused += f.problem != NULL;
		if (j->o->verbose)
			print_file(j->c->files[i].path, &f);
	}
	for (uint32_t i = 0; j->o->verbose && (part = resolve_kernel_part(j->r, i)); i++)
		if (resolve_file(j->r, (uint32_t)j->c->n_files + i, &f))
			print_kernel_file(part, &f);
	if (unused && !j->o->verbose)
		cli_warn(&cli, "%zu file%s could not be used, so %s frames have no names: -v says why",
			unused, unused == 1 ? "" : "s", unused == 1 ? "its" : "their");
}

/* Count how often each frame occurs in the output. */
static void count_span(const struct job *j, const struct stackids_span *s, uint64_t *times)
{
	const uint32_t *ids = stackids_at(j->list.stacks, s);

	for (uint32_t i = 0; i < s->len; i++)
		times[ids[i]]++;
}

/* NULL when out of memory. */
static uint64_t *count_frames(const struct job *j)
{
	uint64_t *times = calloc(resolve_count(j->r) + 1, sizeof(*times));

	for (size_t i = 0; i < j->list.n_records && times; i++) {
		count_span(j, &j->list.records[i].kernel, times);
		count_span(j, &j->list.records[i].user, times);
	}
	return times;
}

/* Say once what debug files would give, unless the user has decided which servers to ask, or none can be. */
static void print_missing(const struct job *j)
{
	_cleanup_free_ uint64_t *times =
		getenv("DEBUGINFOD_URLS") || !debugserver_possible() ? NULL : count_frames(j);
	struct missing_names m;
	struct buf files = { 0 };
	char urls[512];

	if (!times || missing_names_count(j->c, j->r, times, &m) != 0 || !missing_names_many(&m) ||
		(!debugserver_advise(j->o->symfs, urls, sizeof(urls)) &&
			!debugserver_advise(NULL, urls, sizeof(urls))))
		return;
	for (size_t i = 0; i < m.n_files; i++) {
		const char *slash = strrchr(m.files[i], '/');

		buftext_str(&files, i ? ", " : "");
		buftext_escaped(&files, slash ? slash + 1 : m.files[i], TEXT_WORD);
	}
	cli_warn(&cli,
		"%" PRIu64 " of %" PRIu64 " user frames have no name for lack of debug files, most in %.*s",
		m.unnamed, m.frames, (int)files.len, files.p ? (const char *)files.p : "");
	cli_warn(&cli, "hint: a server may have them: export DEBUGINFOD_URLS='%s', and run symbolize again",
		urls);
	buf_free(&files);
}

/* Report losses in the same words as the recorder. */
static void print_lost(const struct cap_reader *c)
{
	for (size_t i = 0; i < c->n_counters; i++) {
		struct buf b = { 0 };

		if (!perf_text_is_loss(&c->counters[i]))
			continue;
		counter_put(&b, c->counters[i].name, c->counters[i].value);
		cli_warn(&cli, "the recording lost %.*s", (int)b.len, b.p ? (const char *)b.p : "");
		buf_free(&b);
	}
}

/* Report what the reader of the result should know. Returns CLI_OK, or CLI_INCOMPLETE if data is missing. */
static int print_notes(const struct job *j)
{
	const struct cap_reader *c = j->c;

	if (!j->o->quiet) {
		print_files(j);
		print_missing(j);
		print_lost(c);
	}
	if (!c->complete) {
		cli_warn(&cli, "the capture is incomplete: %s", c->damage[0] ? c->damage : "no trailer");
		return CLI_INCOMPLETE;
	}
	if (!j->list.n_records && (j->o->pids.n || j->o->tids.n || j->o->comms.n)) {
		cli_warn(&cli, "no wait in the capture is of the given processes and threads");
		return CLI_INCOMPLETE;
	}
	return CLI_OK;
}

/* Progress on a terminal, shown only if the work takes a while. */
struct progress {
	uint64_t began_ns, shown_ns;
};

static void show_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
	struct progress *p = ctx;
	uint64_t now = now_ns();
	char text[256];

	if (now - p->began_ns < PROGRESS_AFTER_NS || now - p->shown_ns < PROGRESS_EVERY_NS)
		return;
	p->shown_ns = now;
	text_escape(text, sizeof(text), what, strlen(what), TEXT_LINE);
	if (total)
		fprintf(stderr, "\r%s: %s: %" PRIu64 " of %" PRIu64 " files\033[K", cli.name, text, done,
			total);
	else
		fprintf(stderr, "\r%s: %s\033[K", cli.name, text);
}

static void end_progress(const struct progress *p)
{
	if (p->shown_ns)
		fputs("\r\033[K", stderr);
}

static int print_stats(const struct job *j, struct err *e)
{
	_cleanup_free_ uint64_t *times = count_frames(j);
	struct modules_stats s;
	struct name_coverage l = { 0 };
	struct buf b = { 0 };
	int rc = times ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < resolve_count(j->r) && rc == 0; i++)
		rc = name_coverage_add(&l, resolve_frame(j->r, i), times[i]);
	resolve_stats(j->r, &s);
	name_coverage_text(&b, &l, &s, "symbolize: ");
	if (rc == 0 && !b.failed)
		fwrite(b.p, 1, b.len, stderr);
	rc = rc ? rc : b.failed ? -ENOMEM : 0;
	name_coverage_free(&l);
	buf_free(&b);
	return rc ? err_nomem(e, "statistics") : 0;
}

/* A capture that has none may have been empty all the time. */
static int check_events(const struct job *j, struct err *e)
{
	const char *path = strcmp(j->o->path, "-") == 0 ? "standard input" : j->o->path;

	for (size_t i = 0; i < j->c->n_options; i++)
		if (strcmp(j->c->options[i].name, "events") == 0)
			return 0;
	if (j->o->events != EVENTS_ALWAYS || j->c->n_waits)
		return 0;
	err_set(e, -ENOENT, "'%s' has sums of waits, not each by itself", path);
	err_hint(e, "record with offcpu-record --events");
	return -ENOENT;
}

/* Select what is to be printed, and find all names. */
static int find_all(struct job *j, const struct resolve_opts *ro, struct err *e)
{
	int rc = resolve_open(j->c, ro, &j->r, e);

	rc = rc ? rc : select_samples(j, e);
	return rc ? rc : resolve_all(j, e);
}

/* The end of what a flush has: readers can show it now. */
static int print_flush(const struct job *j, struct err *e)
{
	const struct cap_reader *c = j->c;
	const uint64_t ns = c->last_flush_ns - MIN(c->host.start_mono_ns, c->last_flush_ns);
	int n;

	n = j->o->format == WAIT_JSON
		    ? printf("{\"type\":\"flush\",\"time_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64 "}\n",
			      c->last_flush_ns, ns)
		    : printf("# flush: duration=%" PRIu64 ".%09" PRIu64 "\n\n", ns / 1000000000,
			      ns % 1000000000);
	return n < 0 || fflush(stdout) != 0 ? err_sys(e, -errno, "cannot write to standard output") : 0;
}

static void on_interrupt(int sig)
{
	(void)sig;
}

/* Ctrl-C in a pipeline goes to the recorder too, which then writes the end: only a second one ends this. */
static void let_recorder_end(void)
{
	const struct sigaction once = { .sa_handler = on_interrupt,
		.sa_flags = (int)(SA_RESETHAND | SA_RESTART) };
	struct sigaction now;

	if (sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		sigaction(SIGINT, &once, NULL);
}

/*
 * Print what each flush has, as soon as it is there. Names and kinds are those of all samples so far, and are
 * looked for again only when there are new ones.
 */
static int print_live(struct job *j, const struct resolve_opts *ro, struct err *e)
{
	size_t known = 0;
	int more = 1, rc;

	if (strcmp(j->o->path, "-") == 0)
		let_recorder_end();
	rc = cap_reader_follow(j->o->path, j->o->events, &j->c, e);

	while (rc == 0 && more) {
		more = cap_reader_next(j->c, e);
		rc = MIN(more, 0);
		j->list.totals = (struct perf_text_totals){ .lost = rc ? 0 : perf_text_lost(j->c) };
		if (rc == 0 && (!j->r || j->c->n_samples != known)) {
			forget_names(j);
			known = j->c->n_samples;
			rc = check_events(j, e);
			rc = rc ? rc : find_all(j, ro, e);
		} else if (rc == 0) {
			rc = make_turns(j, e);
		}
		rc = rc ? rc : print_all(j, e);
		j->list.no_head = true;
		if (rc == 0 && more)
			rc = print_flush(j, e);
	}
	return rc;
}

static int run(const struct opts *o, int *status, struct err *e)
{
	const bool tty = !o->quiet && isatty(STDERR_FILENO);
	struct progress p = { .began_ns = now_ns() };
	const struct resolve_opts ro = { .files = { .symfs = o->symfs,
						 .debug_dirs = o->debug_dirs.p,
						 .n_debug_dirs = o->debug_dirs.n,
						 .vmlinux = o->vmlinux,
						 .demangle = !o->no_demangle,
						 .inlines = !o->no_inline,
						 .lines = o->lines || o->format == WAIT_JSON ||
							  o->format == WAIT_TABLES,
						 .no_cache = o->no_cache,
						 .jobs = o->jobs,
						 .memory_bytes = o->memory_bytes,
						 .debuginfod = true,
						 .progress = tty ? show_progress : NULL,
						 .progress_ctx = &p } };
	CLEANUP(job_free) struct job j = { .o = o };
	int rc = kinds_load(o->kinds, &j.kinds, e);

	if (rc == 0 && o->print_kinds) {
		fputs(kinds_text(), stdout);
		*status = CLI_OK;
		return 0;
	}
	if (rc == 0 && o->live) {
		rc = print_live(&j, &ro, e);
	} else if (rc == 0) {
		rc = o->events ? cap_reader_load_waits(o->path, &j.c, e) : cap_reader_load(o->path, &j.c, e);
		rc = rc ? rc : check_events(&j, e);
		rc = rc ? rc : find_all(&j, &ro, e);
		end_progress(&p);
		rc = rc ? rc : print_all(&j, e);
	}
	rc = rc || !o->stats ? rc : print_stats(&j, e);
	if (rc == 0)
		*status = print_notes(&j);
	return rc;
}

int main(int argc, char *argv[])
{
	struct opts o = { 0 };
	struct err e = { 0 };
	int status, rc;

	if (!cli_parse(&cli, argc, argv, &o, &status))
		return status;
	rc = run(&o, &status, &e);
	cli_free(&cli, &o);
	if (rc == 0)
		return cli_finish(&cli, status);
	cli_error(&cli, &e);
	return CLI_FAILED;
}
