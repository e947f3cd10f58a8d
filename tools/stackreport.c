/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stackreport - where the time is: the greatest waits of a capture or a text */
#include "base/cli.h"
#include "report/critical_print.h"
#include "report/format.h"
#include "report/live.h"
#include "report/print.h"
#include "report/source.h"

#include <errno.h>
#include <string.h>

#define TOP 10 /* rows of a table */
#define NS_PER_S UINT64_C(1000000000)

static const char *const bys[] = { "stack", "function", "thread", "process", "kind", "module", "state",
	"waker", NULL };
static const char *const units[] = { "auto", "ns", "us", "ms", "count", NULL };

struct opts {
	struct ranking_opts ranking;
	uint64_t interval_ns; /* 0: no intervals */
	const char *function, *event, *mark, *kinds;
	bool events, chain, segments, live;
	uint64_t tid, from_ns, to_ns;
	enum report_format format;
	enum waits_unit unit;
	uint64_t top, width;
	struct cli_list files; /* const char * */
};

static int take_interval(const char *arg, void *opts, struct err *e)
{
	struct opts *o = opts;
	int code = cli_duration(arg, 1, &o->interval_ns, e);

	if (code || o->interval_ns)
		return code;
	return err_set(e, -EINVAL, "'%s' is no time at all", arg);
}

static const struct cli_option options[] = {
	{ 0, "by", "WHAT", "what to rank (default: stack); or a time, as 1s: each interval of the recording",
		CLI_WORD(struct opts, ranking.by, bys), .call = take_interval, .group = 1 },
	{ 0, "function", "NAME", "instead: what calls this function, and what it calls",
		CLI_TEXT(struct opts, function), .group = 1 },
	{ 0, "chain", NULL, "instead: the critical path of a thread, through those that it waited for",
		CLI_FLAG(struct opts, chain), .group = 1 },
	{ 't', "tid", "TID", "with --chain: of this thread", CLI_NUMBER(struct opts, tid), .min = 1 },
	{ 0, "from", "TIME", "with --chain: from this time of the recording on, in seconds",
		CLI_DURATION(struct opts, from_ns, NS_PER_S) },
	{ 0, "to", "TIME", "with --chain: up to this time", CLI_DURATION(struct opts, to_ns, NS_PER_S) },
	{ 0, "mark", "NAME", "with --chain: of each request, between two waits in this function",
		CLI_TEXT(struct opts, mark) },
	{ 0, "segments", NULL, "with --chain: print the path in order of time, too",
		CLI_FLAG(struct opts, segments) },
	{ 'n', "top", "N", "rows at most (default: 10; with --json and --tsv all)",
		CLI_NUMBER(struct opts, top), .min = 1 },
	{ 0, "kind", "LIST", "only waits of these kinds, separated by commas",
		CLI_TEXT(struct opts, ranking.kinds) },
	{ 0, "kinds", "FILE", "rules for kinds of waits of captures, which come before the usual ones",
		CLI_FILE(struct opts, kinds) },
	{ 0, "idle", NULL, "rank waits for work too", CLI_FLAG(struct opts, ranking.idle) },
	{ 0, "all", NULL, "rank everything, also places where each thread waited all the time",
		CLI_FLAG(struct opts, ranking.all) },
	{ 0, "live", NULL, "show it while it is recorded, of the text that 'symbolize --live' is writing",
		CLI_FLAG(struct opts, live) },
	{ 0, "last", NULL, "with --live: rank by what has ended since the table before",
		CLI_FLAG(struct opts, ranking.by_last) },
	{ 0, "events", NULL, "read each wait of captures by itself, so that there is a p99",
		CLI_FLAG(struct opts, events) },
	{ 0, "event", "EVENT", "count this event (default: offcpu-time, if a capture has waits)",
		CLI_TEXT(struct opts, event) },
	{ 0, "unit", "UNIT", "of folded lines (default: ns), and of periods of events other than offcpu-time",
		CLI_WORD(struct opts, unit, units) },
	{ 'j', "json", NULL, "one JSON object; times in ns", CLI_VALUE(struct opts, format, REPORT_JSON),
		.group = 2 },
	{ 0, "tsv", NULL, "lines with tabs, the first with their names; times in ns",
		CLI_VALUE(struct opts, format, REPORT_TSV), .group = 2 },
	{ 0, "width", "N", "columns of the table (default: the terminal's, or 80)",
		CLI_NUMBER(struct opts, width), .min = 40, .max = 10000 },
	{ .arg = "FILE", CLI_FILES(struct opts, files) },
};

static int check(const struct cli *c, void *opts)
{
	const struct opts *o = opts;
	struct err e;

	if (!o->chain && (o->tid || o->from_ns || o->to_ns || o->mark || o->segments))
		return cli_usage(c, "--tid, --from, --to, --mark and --segments need --chain");
	if (o->chain && (o->ranking.kinds || o->ranking.idle || o->ranking.all))
		return cli_usage(c, "--chain is of all waits: without --kind, --idle and --all");
	if (o->live && (o->chain || o->interval_ns || o->function || o->events))
		return cli_usage(c, "--live is without --chain, --function, --events and --by with a time");
	if (o->ranking.by_last && !o->live)
		return cli_usage(c, "--last needs --live");
	if (o->to_ns && o->from_ns >= o->to_ns)
		return cli_usage(c, "--from must be before --to");
	if ((o->chain || o->interval_ns || o->live) && o->files.n > 1)
		return cli_usage(c, "%s is of one recording, not of %zu",
			o->chain  ? "--chain"
			: o->live ? "--live"
				  : "--by with a time",
			o->files.n);
	if (o->kinds && source_check_kinds(o->files.p, o->files.n, &e) != 0)
		return cli_usage(c, "%s", e.msg);
	return CLI_OK;
}

static const struct cli cli = {
	.name = "stackreport",
	.about = "Show where the time is: the places with the greatest waits. FILE is a capture, the text "
		 "of symbolize or perf script, or folded lines. Without FILE, or with -, read stdin.",
	.status = "Exit status: 0 complete, 1 incomplete or no wait, 2 failed, 64 bad usage.",
	CLI_OPTIONS(options),
	.check = check,
};

/* Report what was skipped. Returns the exit status. */
static int report(const struct waits *w)
{
	struct err e = { 0 };

	bool malformed, sums;

	if (waits_filtered(w, &e))
		cli_warn(&cli, "%s", e.msg);
	sums = waits_have_sums(w, &e);
	if (sums)
		cli_error(&cli, &e);
	malformed = waits_malformed(w, cli.name, &e);
	if (malformed)
		cli_error(&cli, &e);
	return malformed || sums ? CLI_INCOMPLETE : CLI_OK;
}

static size_t top_of(const struct opts *o)
{
	return o->top ? o->top : o->format == REPORT_TABLE ? TOP : 0;
}

static int print_ranking(const struct opts *o, const struct waits *w, struct out *out, struct err *e)
{
	struct ranking_opts opts = o->ranking;
	struct report_print p = { .waits = w,
		.opts = &opts,
		.format = o->format,
		.top = top_of(o),
		.width = format_width(o->width),
		.one_line = o->live };
	struct ranking_function function = { 0 };
	struct ranking ranking = { 0 };
	int code;

	opts.by_last = false;

	code = o->function ? ranking_function(&function, w, &opts, o->function, e)
			   : ranking_make(&ranking, w, &opts, e);
	if (!code)
		code = o->function ? report_function(out, &p, &function, o->function, e)
				   : report_ranking(out, &p, &ranking, e);
	ranking_function_free(&function);
	ranking_free(&ranking);
	return code;
}

static int print_intervals(const struct opts *o, const struct waits *w, struct out *out, struct err *e)
{
	struct ranking_opts opts = o->ranking;
	struct report_print p = {
		.waits = w, .opts = &opts, .format = o->format, .top = o->top, .width = format_width(o->width)
	};
	struct intervals intervals = { 0 };
	struct ranking ranking = { 0 };
	int code;

	opts.rows = true;
	code = ranking_make(&ranking, w, &opts, e);
	if (!code)
		code = intervals_make(&intervals, w, &ranking, o->interval_ns, e);
	if (!code)
		code = report_intervals(out, &p, &ranking, &intervals, e);
	intervals_free(&intervals);
	ranking_free(&ranking);
	return code;
}

/* --- the critical path --- */

static bool has_tid(const struct waits *w, uint32_t thread, uint64_t tid)
{
	char text[24];
	size_t len;
	const char *p = waits_string(w, w->threads[thread].id, &len);

	return (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)tid) == len &&
	       memcmp(p, text, len) == 0;
}

/* The thread that was requested, or the only one. Of some there are only samples. */
static int choose_thread(const struct opts *o, const struct waits *w, uint32_t *ret, struct err *e)
{
	_cleanup_free_ bool *waits = calloc(w->n_threads + 1, sizeof(*waits));
	size_t n = 0;

	if (!waits)
		return err_nomem(e, "the threads");
	for (size_t i = 0; i < w->n_rows; i++) {
		if (w->rows[i].thread != WAITS_NONE)
			waits[w->rows[i].thread] |= w->rows[i].stats.count != 0;
	}
	for (uint32_t i = 0; i < w->n_threads; i++) {
		n += waits[i];
		if (!waits[i] || (o->tid && !has_tid(w, i, o->tid)))
			continue;
		*ret = i;
		if (o->tid)
			return 0;
	}
	if (!o->tid && n == 1)
		return 0;
	if (o->tid)
		err_set(e, -ENOENT, "no wait is of thread %llu", (unsigned long long)o->tid);
	else
		err_set(e, -EINVAL, "--chain is of one thread, and %zu waited", n);
	err_hint(e, "name it with -t TID; --by thread lists them");
	return e->code;
}

/* The paths of all requests, and of the slowest one. */
static int add_requests(const struct opts *o, const struct critical_waits *c, struct critical_print *p,
	struct critical_path *path, struct critical_path *slowest, struct err *e)
{
	const struct waits *w = p->waits;
	const size_t len = strlen(o->mark);
	const uint32_t mark = intern_find(&w->strings, o->mark, len, intern_hash(&w->strings, o->mark, len));
	const uint64_t start = waits_start(w);
	uint64_t begin, end, from = 0, longest = 0;
	size_t i = 0;
	int code = 0;

	while (!code && mark != INTERN_NONE &&
		critical_next_request(c, p->thread, mark, &i, start + p->window.from_ns,
			start + p->window.to_ns, &begin, &end)) {
		code = critical_add(path, c, p->thread, begin, end, false, e);
		if (!p->n_requests++ || end - begin > longest) {
			longest = end - begin;
			from = begin;
		}
	}
	if (code)
		return code;
	if (!p->n_requests) {
		err_set(e, -ENOENT, "the thread has no two waits in '%s', between which a request would be",
			o->mark);
		err_hint(e, "--by function --all lists the functions of waits");
		return -ENOENT;
	}
	p->slowest = (struct critical_window){ from - start, from - start + longest };
	return critical_add(slowest, c, p->thread, from, from + longest, p->segments, e);
}

static int print_chain(const struct opts *o, const struct waits *w, struct out *out, struct err *e)
{
	const uint64_t start = waits_start(w), len = waits_end(w) - start;
	struct critical_path path = { 0 }, slowest = { 0 };
	struct critical_waits c = { 0 };
	struct critical_print p = { .waits = w,
		.format = o->format,
		.top = top_of(o),
		.width = format_width(o->width),
		.window = { o->from_ns, o->to_ns ? MIN(o->to_ns, len) : len },
		.path = &path,
		.slowest_path = &slowest,
		.segments = o->segments,
		.mark = o->mark };
	int code = critical_make(&c, w, e);

	if (!code)
		code = choose_thread(o, w, &p.thread, e);
	if (!code && o->from_ns >= len) {
		char text[FORMAT_NUMBER_MAX];

		code = err_set(e, -EINVAL, "the recording ends at %s, before --from", format_time(text, len));
	}
	if (!code)
		code = o->mark ? add_requests(o, &c, &p, &path, &slowest, e)
			       : critical_add(&path, &c, p.thread, start + p.window.from_ns,
					 start + p.window.to_ns, o->segments, e);
	if (!code) {
		critical_sort(&path);
		critical_sort(&slowest);
		code = critical_print(out, &p, e);
	}
	critical_free(&c);
	critical_path_free(&path);
	critical_path_free(&slowest);
	return code;
}

static int print(const struct opts *o, const struct waits *w, struct err *e)
{
	struct out out = { 0 };
	int code = 0;

	if (o->chain || o->interval_ns)
		code = waits_need_each(w, o->files.n ? *(const char *const *)o->files.p : "-", e);
	if (!code)
		code = out_init(&out, STDOUT_FILENO, e);
	if (!code)
		code = o->chain         ? print_chain(o, w, &out, e)
		       : o->interval_ns ? print_intervals(o, w, &out, e)
					: print_ranking(o, w, &out, e);
	if (!code)
		code = out_flush(&out, e);
	out_free(&out);
	return code;
}

static int no_wait(const struct opts *o, const struct waits *w)
{
	const char *const *files = o->files.p;
	struct err e;

	err_set(&e, -ENOENT, "no wait in %s%s%s%s", o->files.n ? "'" : "",
		o->files.n ? waits_file_name(files[0]) : "standard input", o->files.n ? "'" : "",
		o->files.n > 1 ? " and the other files" : "");
	if (w->other) {
		size_t len;
		const char *other = waits_string(w, w->other, &len);

		err_hint(&e, "there are records of another event: --event %.*s counts them", (int)len, other);
	}
	cli_error(&cli, &e);
	return CLI_INCOMPLETE;
}

/* The result and the status; CLI_FAILED with the message in E. */
static int answer(const struct opts *o, const struct waits *w, struct err *e)
{
	int code, status;

	if (waits_other_input(w, cli.name, e))
		return CLI_FAILED;
	if (!w->n_rows)
		return w->n_malformed ? report(w) : no_wait(o, w);
	code = print(o, w, e);
	if (code && code != -ENOENT)
		return CLI_FAILED;
	status = report(w);
	if (!code)
		return status;
	/* nothing is of that name or kind */
	cli_error(&cli, e);
	return CLI_INCOMPLETE;
}

/* Show what comes, but for the last table. As live_run(). */
static int read_live(const struct opts *o, struct waits *w, struct paragraphs *in,
	const struct waits_opts *opts, struct err *e)
{
	const struct report_print p = { .waits = w,
		.opts = &o->ranking,
		.format = o->format,
		.top = o->top,
		.width = o->width,
		.last = true };

	return live_run(w, in, opts, &p, e);
}

static int run(void *parsed, struct err *e)
{
	const struct opts *o = parsed;
	const bool each = o->chain || o->interval_ns;
	/* in order of time, the first record may be a sample */
	const char *event = o->event ? o->event : o->events || o->live || each ? "offcpu-time" : NULL;
	const struct waits_opts opts = { .unit = o->unit,
		.event = event,
		.each = each,
		.samples = o->chain && !o->event ? "cpu-clock" : NULL };
	static const char *const events[] = { "--events", NULL }, *const live[] = { "--live", NULL };
	struct source source = { .pid = -1,
		.options = o->events || each ? events
			   : o->live         ? live
					     : NULL,
		.kinds = o->kinds };
	struct paragraphs *in = NULL;
	struct waits waits = { 0 };
	int status = CLI_FAILED, code;

	code = paragraphs_open(o->files.p, o->files.n, &in, e);
	if (!code) {
		paragraphs_open_with(in, source_open, &source);
		code = o->live ? read_live(o, &waits, in, &opts, e) : waits_read(&waits, in, &opts, e);
	}
	/* Ctrl-C may have come before the end */
	if (!code)
		code = source_end(&source, e);
	if (code >= 0)
		status = answer(o, &waits, e);
	if (status == CLI_OK && source.incomplete)
		status = CLI_INCOMPLETE;
	paragraphs_close(in);
	source_close(&source);
	waits_free(&waits);
	return status;
}

int main(int argc, char *argv[])
{
	struct opts o = { 0 };

	return cli_main(&cli, argc, argv, &o, run);
}
