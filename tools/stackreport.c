/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stackreport - where the time is: the greatest waits of a capture or a text */
#include "base/cli.h"
#include "report/format.h"
#include "report/print.h"
#include "report/source.h"

#include <errno.h>
#include <string.h>

#define TOP 10 /* rows of a table */

static const char *const bys[] = { "stack", "function", "thread", "process", "kind", "module", "state",
	"waker", NULL };
static const char *const units[] = { "auto", "ns", "us", "ms", "count", NULL };

struct opts {
	struct ranking_opts ranking;
	const char *function, *event;
	enum report_format format;
	enum waits_unit unit;
	uint64_t top, width;
	struct cli_list files; /* const char * */
};

static const struct cli_option options[] = {
	{ 0, "by", "WHAT", "what to rank (default: stack)", CLI_WORD(struct opts, ranking.by, bys),
		.group = 1 },
	{ 0, "function", "NAME", "instead: what calls this function, and what it calls",
		CLI_TEXT(struct opts, function), .group = 1 },
	{ 'n', "top", "N", "rows at most (default: 10; with --json and --tsv all)",
		CLI_NUMBER(struct opts, top), .min = 1 },
	{ 0, "kind", "LIST", "only waits of these kinds, separated by commas",
		CLI_TEXT(struct opts, ranking.kinds) },
	{ 0, "idle", NULL, "rank waits for work too", CLI_FLAG(struct opts, ranking.idle) },
	{ 0, "all", NULL, "rank everything, also places where each thread waited all the time",
		CLI_FLAG(struct opts, ranking.all) },
	{ 0, "event", "EVENT", "count this event (default: the first one that comes)",
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

static const struct cli cli = {
	.name = "stackreport",
	.about = "Show where the time is: the places with the greatest waits. FILE is a capture, the text "
		 "of symbolize or perf script, or folded lines. Without FILE, or with -, read stdin.",
	.status = "Exit status: 0 complete, 1 incomplete or no wait, 2 failed, 64 bad usage.",
	CLI_OPTIONS(options),
};

/* Report what was skipped. Returns the exit status. */
static int report(const struct waits *w)
{
	struct err e = { 0 };

	if (waits_filtered(w, &e))
		cli_warn(&cli, "%s", e.msg);
	if (!waits_malformed(w, cli.name, &e))
		return CLI_OK;
	cli_error(&cli, &e);
	return CLI_INCOMPLETE;
}

static int print(const struct opts *o, const struct waits *w, struct err *e)
{
	struct report_print p = { .waits = w,
		.opts = &o->ranking,
		.format = o->format,
		.top = o->top                      ? o->top
		       : o->format == REPORT_TABLE ? TOP
						   : 0,
		.width = format_width(o->width) };
	struct ranking_function function = { 0 };
	struct ranking ranking = { 0 };
	struct out out = { 0 };
	int code;

	code = o->function ? ranking_function(&function, w, &o->ranking, o->function, e)
			   : ranking_make(&ranking, w, &o->ranking, e);
	if (!code)
		code = out_init(&out, STDOUT_FILENO, e);
	if (!code)
		code = o->function ? report_function(&out, &p, &function, o->function, e)
				   : report_ranking(&out, &p, &ranking, e);
	if (!code)
		code = out_flush(&out, e);
	out_free(&out);
	ranking_function_free(&function);
	ranking_free(&ranking);
	return code;
}

static int no_wait(const struct opts *o)
{
	const char *const *files = o->files.p;
	struct err e;

	err_set(&e, -ENOENT, "no wait in %s%s%s%s", o->files.n ? "'" : "",
		o->files.n ? waits_file_name(files[0]) : "standard input", o->files.n ? "'" : "",
		o->files.n > 1 ? " and the other files" : "");
	cli_error(&cli, &e);
	return CLI_INCOMPLETE;
}

/* The result and the status; CLI_FAILED with the message in E. */
static int answer(const struct opts *o, const struct waits *w, struct err *e)
{
	int code, status;

	if (!w->n_rows)
		return w->n_malformed ? report(w) : no_wait(o);
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

static int run(const struct opts *o, struct err *e)
{
	struct source source = { .pid = -1 };
	struct paragraphs *in = NULL;
	struct waits waits = { 0 };
	int status = CLI_FAILED, code;

	code = paragraphs_open(o->files.p, o->files.n, &in, e);
	if (!code) {
		paragraphs_open_with(in, source_open, &source);
		code = waits_read(&waits, in, o->unit, o->event, false, e);
	}
	if (!code)
		code = source_end(&source, e);
	if (!code)
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
	struct err e = { 0 };
	int status;

	if (!cli_parse(&cli, argc, argv, &o, &status))
		return status;
	status = run(&o, &e);
	cli_free(&cli, &o);
	if (status == CLI_FAILED)
		cli_error(&cli, &e);
	return cli_finish(&cli, status);
}
