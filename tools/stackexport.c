/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stackexport - a capture in the formats of other people's viewers and servers */
#include "base/cli.h"
#include "base/out.h"
#include "base/result.h"
#include "capture/format.h"
#include "export/export.h"
#include "report/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

enum { FORMAT_PPROF, FORMAT_SPEEDSCOPE, FORMAT_FIREFOX, FORMAT_PERFETTO, FORMAT_OTLP };

static const char *const formats[] = { [FORMAT_PPROF] = "pprof",
	[FORMAT_SPEEDSCOPE] = "speedscope",
	[FORMAT_FIREFOX] = "firefox",
	[FORMAT_PERFETTO] = "perfetto",
	[FORMAT_OTLP] = "otlp",
	NULL };

/* How files of each begin, so that a newer one may replace them. */
static const struct result_type types[] = {
	[FORMAT_PPROF] = { "a profile for pprof", "\x1f\x8b\x08\0\0\0\0\0\x04\xff", 10 },
	[FORMAT_SPEEDSCOPE] = { "a file for speedscope", "{\"$schema\":", 11 },
	[FORMAT_FIREFOX] = { "a profile of the Firefox Profiler", "{\"meta\":", 8 },
	[FORMAT_PERFETTO] = { "a trace of Perfetto", "\x0a\x04\x50\x01\x68\x01", 6 },
	[FORMAT_OTLP] = { "profiles of OpenTelemetry", "\x12", 1 },
};

static const bool is_binary[] = { [FORMAT_PPROF] = true, [FORMAT_PERFETTO] = true, [FORMAT_OTLP] = true };

struct opts {
	int format; /* -1: none given */
	const char *output, *path, *kinds;
	bool events, force;
};

static const struct cli_option options[] = {
	{ 0, "format", "FORMAT",
		"pprof, speedscope, firefox (the Firefox Profiler), perfetto or otlp (OpenTelemetry)",
		CLI_WORD(struct opts, format, formats) },
	{ 0, "events", NULL,
		"each wait by itself (recorded with --events); perfetto and firefox: always, if there are "
		"any",
		CLI_FLAG(struct opts, events) },
	{ 0, "kinds", "FILE", "rules for kinds of waits of captures, which come before the usual ones",
		CLI_FILE(struct opts, kinds) },
	{ 'o', "output", "OUT", "write to the file OUT; - is standard output (default)",
		CLI_FILE(struct opts, output) },
	{ 0, "force", NULL, "replace a file OUT that is not of this format", CLI_FLAG(struct opts, force) },
	{ .arg = "FILE", CLI_FILE(struct opts, path) },
};

static bool to_file(const struct opts *o)
{
	return o->output && strcmp(o->output, "-") != 0;
}

static int check(const struct cli *c, void *opts)
{
	struct opts *o = opts;
	struct err e;

	if (o->format < 0)
		return cli_usage(c, "no --format given: pprof, speedscope, firefox, perfetto or otlp");
	if (!o->path && isatty(STDIN_FILENO))
		return cli_usage(c, "no FILE given, and standard input is a terminal");
	o->path = o->path ? o->path : "-";
	if (o->kinds && source_check_kinds(&o->path, 1, &e) != 0)
		return cli_usage(c, "%s", e.msg);
	return CLI_OK;
}

static const struct cli cli = {
	.name = "stackexport",
	.about = "Write a recording for other viewers and servers. FILE is a capture, or what symbolize "
		 "--format=tables prints. Without FILE, or with -, read stdin.",
	.status = "Exit status: 0 complete, 1 incomplete, 2 failed, 64 bad usage.",
	CLI_OPTIONS(options),
	.check = check,
};

static int read_profile(const struct opts *o, struct source *s, struct profile *p, struct err *e)
{
	const char *name = strcmp(o->path, "-") == 0 ? "standard input" : o->path;
	_cleanup_close_ int fd = source_open(s, o->path, e);
	int code;

	if (fd < 0)
		return fd;
	code = profile_read(p, fd, name, e);
	close(TAKE_FD(fd));
	/* where symbolize failed, that is the reason */
	if (source_end(s, e) != 0)
		return -EIO;
	return code;
}

static int export(const struct opts *o, struct profile *p, struct out *out, uint64_t *sums, struct err *e)
{
	switch (o->format) {
	case FORMAT_SPEEDSCOPE:
		return export_speedscope(p, out, e);
	case FORMAT_FIREFOX:
		return export_firefox(p, out, e);
	case FORMAT_PERFETTO:
		return export_perfetto(p, out, sums, e);
	case FORMAT_OTLP:
		return export_otlp(p, out, e);
	default:
		return export_pprof(p, out, e);
	}
}

static int print(const struct opts *o, struct profile *p, int fd, uint64_t *sums, struct err *e)
{
	struct out out = { 0 };
	int code = out_init(&out, fd, e);

	if (!code)
		code = export(o, p, &out, sums, e);
	if (!code)
		code = out_flush(&out, e);
	out_free(&out);
	return code;
}

/* A file gets its name when it is complete. */
static int print_to_file(const struct opts *o, struct profile *p, uint64_t *sums, struct err *e)
{
	struct result_file f;
	int code = result_file_begin(o->output, o->force, &types[o->format], &f, e);

	if (code)
		return code;
	code = print(o, p, f.fd, sums, e);
	if (!code)
		code = result_file_commit(&f, o->output, e);
	result_file_close(&f);
	return code;
}

static int print_to_stdout(const struct opts *o, struct profile *p, uint64_t *sums, struct err *e)
{
	_cleanup_close_ int fd = -1;

	if (!is_binary[o->format])
		return print(o, p, STDOUT_FILENO, sums, e);
	fd = result_file_stdout(&types[o->format], e);
	return fd < 0 ? fd : print(o, p, fd, sums, e);
}

/* What the reader of the result should know. Returns the exit status. */
static int report(const struct profile *p, const struct source *s, uint64_t sums)
{
	int status = s->incomplete ? CLI_INCOMPLETE : CLI_OK;

	if (!p->n_records) {
		cli_warn(&cli, "the recording has no wait");
		status = CLI_INCOMPLETE;
	}
	if (p->damage && !s->incomplete) {
		cli_warn(&cli, "the recording is incomplete: %s",
			intern_text(&p->texts, p->damage, &(size_t){ 0 }));
		status = CLI_INCOMPLETE;
	}
	if (sums) {
		cli_warn(&cli,
			"%" PRIu64 " waits and samples are sums, which have no place on a time line: they "
			"are not in the trace",
			sums);
		cli_warn(&cli, "hint: record them with offcpu-record --events");
		status = CLI_INCOMPLETE;
	}
	return status;
}

static int run(void *opts, struct err *e)
{
	const struct opts *o = opts;
	const bool timed = o->format == FORMAT_PERFETTO || o->format == FORMAT_FIREFOX;
	const char *const symbolize[] = { "--format=tables",
		o->events ? "--events"
		: timed   ? "--events=auto"
			  : "--events=never",
		NULL };
	struct source source = { .pid = -1, .options = symbolize, .kinds = o->kinds };
	struct profile p = { 0 };
	uint64_t sums = 0;
	int status = CLI_FAILED, code;

	code = read_profile(o, &source, &p, e);
	if (!code)
		code = to_file(o) ? print_to_file(o, &p, &sums, e) : print_to_stdout(o, &p, &sums, e);
	if (!code)
		status = report(&p, &source, sums);
	profile_free(&p);
	source_close(&source);
	return status;
}

int main(int argc, char *argv[])
{
	struct opts o = { .format = -1 };

	return cli_main(&cli, argc, argv, &o, run);
}
