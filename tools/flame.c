/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flame - a flame graph of folded stacks: one HTML page, or an SVG */
#include "base/cli.h"
#include "base/out.h"
#include "base/result.h"
#include "flame/graph.h"
#include "flame/page.h"
#include "flame/svg.h"

#include <errno.h>
#include <string.h>

struct opts {
	struct flame_opts flame;
	bool svg;
	const char *min; /* parsed by check() */
	const char *output;
	bool force;
	struct cli_list files; /* const char * */
};

static const struct cli_option options[] = {
	{ 'o', "output", "FILE", "write to FILE; - is standard output (default)",
		CLI_FILE(struct opts, output) },
	{ 0, "force", NULL, "replace a FILE that is not such a graph", CLI_FLAG(struct opts, force) },
	{ 0, "title", "TEXT", "the title (default: Flame graph)", CLI_TEXT(struct opts, flame.title) },
	{ 0, "unit", "TEXT", "the unit of the values: ns, us, ms, waits, samples ...",
		CLI_TEXT(struct opts, flame.unit) },
	{ 0, "countname", "TEXT", "the same, as flamegraph.pl calls it", CLI_TEXT(struct opts, flame.unit) },
	{ 0, "diff", NULL, "each line has two values, before and after; colours show the change",
		CLI_FLAG(struct opts, flame.differential) },
	{ 0, "icicle", NULL, "the outermost frames above", CLI_FLAG(struct opts, flame.icicle) },
	{ CLI_HEADING("An SVG instead of an HTML page") },
	{ 0, "svg", NULL, "a picture; in a browser it zooms and searches, too", CLI_FLAG(struct opts, svg) },
	{ 0, "width", "PIXELS", "of the picture (default 1200)", CLI_NUMBER(struct opts, flame.width),
		.min = SVG_WIDTH_MIN, .max = SVG_WIDTH_MAX },
	{ 0, "min", "PERCENT", "omit frames narrower than that part of all (default 0.1)",
		CLI_TEXT(struct opts, min) },
	{ .arg = "FILE", CLI_FILES(struct opts, files) },
};

/* "0.1": digits, and digits after a point. */
static bool parse_percent(const char *s, double *ret)
{
	size_t whole = strspn(s, "0123456789"), all = whole;

	if (s[all] == '.')
		all += 1 + strspn(s + all + 1, "0123456789");
	if (!whole || s[all] || s[all - 1] == '.' || all > 20)
		return false;
	*ret = strtod(s, NULL);
	return *ret <= 100;
}

static int check(const struct cli *c, void *opts)
{
	struct opts *o = opts;
	double percent = 0.1;

	if (!o->svg && (o->flame.width || o->min))
		return cli_usage(c, "option '--%s' is for --svg", o->min ? "min" : "width");
	if (o->min && !parse_percent(o->min, &percent))
		return cli_usage(
			c, "option '--min': '%s' is not a percentage from 0 to 100, such as 0.5", o->min);
	if (!o->files.n && isatty(STDIN_FILENO))
		return cli_usage(c, "no FILE given, and standard input is a terminal");
	o->flame.min = percent / 100;
	o->flame.width = o->flame.width ? o->flame.width : 1200;
	o->flame.title = o->flame.title ? o->flame.title : "Flame graph";
	o->flame.unit = o->flame.unit ? o->flame.unit : "";
	return CLI_OK;
}

static const struct cli cli = {
	.name = "flame",
	.about = "Make a flame graph of folded stacks, \"outermost;...;innermost VALUE\" as fold prints "
		 "them: one "
		 "HTML page that needs nothing else, or an SVG. Without FILE, or with -, read stdin.",
	CLI_OPTIONS(options),
	.check = check,
};

static int print(const struct opts *o, const struct flametree *t, int fd, struct err *e)
{
	struct out out = { 0 };
	int code = out_init(&out, fd, e);

	if (!code)
		code = o->svg ? svg_put(&out, t, &o->flame, e) : graph_put(&out, t, &o->flame, e);
	if (!code)
		code = out_flush(&out, e);
	out_free(&out);
	return code;
}

/* A file gets its name when it is complete, and replaces an older graph alone. */
static int print_to_file(const struct opts *o, const struct flametree *t, struct err *e)
{
	struct result_file f;
	int code = result_file_begin(o->output, o->force, o->svg ? &svg_type : &page_type, &f, e);

	if (code)
		return code;
	code = print(o, t, f.fd, e);
	if (!code)
		code = result_file_commit(&f, o->output, e);
	result_file_close(&f);
	return code;
}

/* Report what was skipped. Returns the exit status. */
static int report(const struct flametree *t)
{
	struct err e = { 0 };

	if (t->malformed) {
		err_set(&e, -EINVAL, "%llu malformed %s skipped; the first is line %llu of '%s': %s",
			(unsigned long long)t->malformed, t->malformed == 1 ? "line is" : "lines are",
			(unsigned long long)t->bad_line,
			strcmp(t->bad_path, "-") == 0 ? "standard input" : t->bad_path, t->bad_why);
		if (!t->stacks)
			err_hint(&e, "flame reads folded stacks: symbolize cap.bin | fold --all | flame");
		cli_error(&cli, &e);
	} else if (!t->stacks) {
		err_set(&e, -ENODATA, "the input has no stack");
		err_hint(&e, "the programs whose output it is may have printed why");
		cli_error(&cli, &e);
	} else if (!t->nodes[0].sum) {
		cli_warn(&cli, "all values are 0: there is nothing to draw");
	}
	return t->malformed || !t->nodes[0].sum ? CLI_INCOMPLETE : CLI_OK;
}

static int run(const struct opts *o, struct err *e)
{
	bool to_file = o->output && strcmp(o->output, "-") != 0;
	struct paragraphs *in = NULL;
	struct flametree t = { 0 };
	int status = CLI_FAILED, code;

	code = paragraphs_open(o->files.p, o->files.n, &in, e);
	if (!code) {
		code = flametree_read(&t, in, o->flame.differential, e);
		if (code == -EINVAL)
			err_hint(e, "make folded stacks of it first: symbolize FILE | fold --all | flame, or "
				    "perf "
				    "script | fold --all | flame");
	}
	if (!code && t.nodes[0].sum)
		code = to_file ? print_to_file(o, &t, e) : print(o, &t, STDOUT_FILENO, e);
	if (!code)
		status = report(&t);
	flametree_free(&t);
	paragraphs_close(in);
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
