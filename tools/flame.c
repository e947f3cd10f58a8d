/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flame - pictures of waits: a flame graph of folded stacks, a heat map, a time line of threads */
#include "base/cli.h"
#include "base/out.h"
#include "base/result.h"
#include "flame/graph.h"
#include "flame/heat.h"
#include "flame/page.h"
#include "flame/svg.h"
#include "flame/threads.h"

#include <errno.h>
#include <string.h>

enum { COLORS_CLASS, COLORS_KIND };

static const char *const colors[] = { [COLORS_CLASS] = "class", [COLORS_KIND] = "kind", NULL };

struct opts {
	struct flame_opts flame;
	int colors; /* COLORS_... */
	bool svg, heat, threads;
	const char *min; /* parsed by check() */
	const char *output;
	bool force;
	struct cli_list files; /* const char * */
};

static const struct cli_option options[] = {
	{ 'o', "output", "FILE", "write to FILE; - is standard output (default)",
		CLI_FILE(struct opts, output) },
	{ 0, "force", NULL, "replace a FILE that is not such a graph", CLI_FLAG(struct opts, force) },
	{ 0, "title", "TEXT", "the title (default: what it is)", CLI_TEXT(struct opts, flame.title) },
	{ 0, "unit", "TEXT", "the unit of the values: ns, us, ms, waits, samples ...",
		CLI_TEXT(struct opts, flame.unit) },
	{ 0, "countname", "TEXT", "the same, as flamegraph.pl calls it", CLI_TEXT(struct opts, flame.unit) },
	{ 0, "diff", NULL, "each line has two values, before and after; colours show the change",
		CLI_FLAG(struct opts, flame.differential) },
	{ 0, "colors", "BY",
		"what colours say: class (of a frame, default), kind (of waits: fold --kind-frames)",
		CLI_WORD(struct opts, colors, colors) },
	{ 0, "icicle", NULL, "the outermost frames above", CLI_FLAG(struct opts, flame.icicle) },
	{ CLI_HEADING("Instead of a flame graph, of what symbolize --events prints") },
	{ 0, "heat", NULL, "a heat map: when waits began, by how long they took", CLI_FLAG(struct opts, heat),
		.group = 1 },
	{ 0, "threads", NULL, "a time line of each thread: its waits, and who ended them",
		CLI_FLAG(struct opts, threads), .group = 1 },
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

/* The option, if there is one, that a heat map and a time line do not have. */
static const char *other_option(const struct opts *o)
{
	return o->svg                  ? "svg"
	       : o->flame.unit         ? "unit"
	       : o->flame.differential ? "diff"
	       : o->flame.icicle       ? "icicle"
	       : o->colors             ? "colors"
	       : o->min                ? "min"
	       : o->flame.width        ? "width"
				       : NULL;
}

static int check(const struct cli *c, void *opts)
{
	struct opts *o = opts;
	const char *other = other_option(o);
	double percent = 0.1;

	if ((o->heat || o->threads) && other)
		return cli_usage(c, "--%s and --%s exclude one another", o->heat ? "heat" : "threads", other);
	if (o->colors == COLORS_KIND && o->flame.differential)
		return cli_usage(c, "--colors=kind and --diff exclude one another");
	o->flame.kinds = o->colors == COLORS_KIND;
	if (!o->svg && (o->flame.width || o->min))
		return cli_usage(c, "option '--%s' is for --svg", o->min ? "min" : "width");
	if (o->min && !parse_percent(o->min, &percent))
		return cli_usage(
			c, "option '--min': '%s' is not a percentage from 0 to 100, such as 0.5", o->min);
	if (!o->files.n && isatty(STDIN_FILENO))
		return cli_usage(c, "no FILE given, and standard input is a terminal");
	o->flame.min = percent / 100;
	o->flame.width = o->flame.width ? o->flame.width : 1200;
	if (!o->flame.title)
		o->flame.title = o->heat      ? "Heat map of waits"
				 : o->threads ? "Time line of threads"
					      : "Flame graph";
	o->flame.unit = o->flame.unit ? o->flame.unit : "";
	return CLI_OK;
}

static const struct cli cli = {
	.name = "flame",
	.about = "Make a flame graph of folded stacks, \"outermost;...;innermost VALUE\" as fold prints "
		 "them: one HTML page that needs nothing else, or an SVG. Or make a page of each wait, of "
		 "what "
		 "symbolize --events prints. Without FILE, or with -, read stdin.",
	CLI_OPTIONS(options),
	.check = check,
};

/* What was read: one of the two. */
struct input {
	struct flametree tree;
	struct timeline timeline;
};

static int print(const struct opts *o, const struct input *in, int fd, struct err *e)
{
	struct out out = { 0 };
	int code = out_init(&out, fd, e);

	if (!code)
		code = o->heat      ? heat_put(&out, &in->timeline, o->flame.title, e)
		       : o->threads ? threads_put(&out, &in->timeline, o->flame.title, e)
		       : o->svg     ? svg_put(&out, &in->tree, &o->flame, e)
				    : graph_put(&out, &in->tree, &o->flame, e);
	if (!code)
		code = out_flush(&out, e);
	out_free(&out);
	return code;
}

/* A file gets its name when it is complete, and replaces an older graph alone. */
static int print_to_file(const struct opts *o, const struct input *in, struct err *e)
{
	struct result_file f;
	int code = result_file_begin(o->output, o->force, o->svg ? &svg_type : &page_type, &f, e);

	if (code)
		return code;
	code = print(o, in, f.fd, e);
	if (!code)
		code = result_file_commit(&f, o->output, e);
	result_file_close(&f);
	return code;
}

static void put_malformed(uint64_t n, const char *one, const char *many, const char *path, uint64_t line,
	const char *why, struct err *e)
{
	err_set(e, -EINVAL, "%llu malformed %s skipped; the first is line %llu of '%s': %s",
		(unsigned long long)n, n == 1 ? one : many, (unsigned long long)line,
		strcmp(path, "-") == 0 ? "standard input" : path, why);
}

/* Report what was skipped. Returns the exit status. */
static int report(const struct flametree *t)
{
	struct err e = { 0 };

	if (t->malformed) {
		put_malformed(t->malformed, "line is", "lines are", t->bad_path, t->bad_line, t->bad_why, &e);
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

/* The same for waits. */
static int report_waits(const struct timeline *t)
{
	struct err e = { 0 };
	bool none = !t->waits.n;

	if (t->malformed) {
		put_malformed(t->malformed, "line or record is", "lines or records are", t->bad_path,
			t->bad_line, t->bad_why, &e);
		if (none && !t->sums)
			err_hint(&e,
				"--heat and --threads read text: symbolize --events cap.bin | flame --heat");
		cli_error(&cli, &e);
	}
	if (t->sums) {
		err_set(&e, -ENODATA, "%llu %s %llu waits in sum, which have no place in time: %s",
			(unsigned long long)t->sums, t->sums == 1 ? "record has" : "records have",
			(unsigned long long)t->summed, none ? "there is nothing to draw" : "not drawn");
		err_hint(&e,
			"record with offcpu-record --events, and print each wait with symbolize --events");
		cli_error(&cli, &e);
	}
	if (none && !t->malformed && !t->sums) {
		err_set(&e, -ENODATA, "the input has no wait");
		err_hint(&e, "the programs whose output it is may have printed why");
		cli_error(&cli, &e);
	}
	if (none && t->sums)
		return CLI_FAILED;
	return none || t->malformed || t->sums ? CLI_INCOMPLETE : CLI_OK;
}

static int read_input(const struct opts *o, struct paragraphs *from, struct input *in, struct err *e)
{
	int code;

	if (o->heat || o->threads) {
		code = timeline_read(&in->timeline, from, o->threads, e);
		if (code == -EINVAL)
			err_hint(e,
				"print the waits of the capture first: symbolize --events FILE | flame --%s",
				o->heat ? "heat" : "threads");
		return code;
	}
	code = flametree_read(&in->tree, from, o->flame.differential, e);
	if (code == -EINVAL)
		err_hint(e, "make folded stacks of it first: symbolize FILE | fold --all | flame, or perf "
			    "script | fold --all | flame");
	return code;
}

static int run(void *opts, struct err *e)
{
	const struct opts *o = opts;
	bool to_file = o->output && strcmp(o->output, "-") != 0, of_waits = o->heat || o->threads;
	struct paragraphs *from = NULL;
	struct input in = { 0 };
	int status = CLI_FAILED, code;

	code = paragraphs_open(o->files.p, o->files.n, &from, e);
	if (!code)
		code = read_input(o, from, &in, e);
	if (!code && (of_waits ? in.timeline.waits.n : in.tree.nodes[0].sum))
		code = to_file ? print_to_file(o, &in, e) : print(o, &in, STDOUT_FILENO, e);
	if (!code)
		status = of_waits ? report_waits(&in.timeline) : report(&in.tree);
	flametree_free(&in.tree);
	timeline_free(&in.timeline);
	paragraphs_close(from);
	return status;
}

int main(int argc, char *argv[])
{
	struct opts o = { 0 };

	return cli_main(&cli, argc, argv, &o, run);
}
