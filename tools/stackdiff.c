/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stackdiff - which places wait longer or shorter than before: two captures or texts */
#include "base/cli.h"
#include "report/difference.h"
#include "report/format.h"
#include "report/source.h"

#include <errno.h>
#include <string.h>

#define TOP 10 /* rows of a table */

static const char *const bys[] = { "stack", "function", "thread-name", "process", "kind", NULL };
static const enum ranking_by rankings[] = { RANKING_STACK, RANKING_FUNCTION, RANKING_THREAD_NAME,
	RANKING_PROCESS_NAME, RANKING_KIND };
static const char *const units[] = { "auto", "ns", "us", "ms", "count", NULL };

enum { FORMAT_FOLDED = DIFFERENCE_JSON + 1 };

struct opts {
	unsigned int by;
	struct difference_opts difference;
	const char *event, *kinds;
	int format; /* enum difference_format, or FORMAT_FOLDED */
	enum waits_unit unit;
	uint64_t top, width;
	const char *paths[DIFFERENCE_SIDES];
};

static const struct cli_option options[] = {
	{ 0, "by", "WHAT", "what to compare (default: stack)", CLI_WORD(struct opts, by, bys) },
	{ 'n', "top", "N", "rows at most (default: 10; with --json and --tsv all)",
		CLI_NUMBER(struct opts, top), .min = 1 },
	{ 0, "kind", "LIST", "only waits of these kinds, separated by commas",
		CLI_TEXT(struct opts, difference.kinds) },
	{ 0, "kinds", "FILE", "rules for kinds of waits of captures, which come before the usual ones",
		CLI_FILE(struct opts, kinds) },
	{ 0, "idle", NULL, "compare waits for work too", CLI_FLAG(struct opts, difference.idle) },
	{ 0, "absolute", NULL, "the sums as they are, not in each second of recording",
		CLI_FLAG(struct opts, difference.absolute) },
	{ 0, "event", "EVENT", "count this event (default: offcpu-time, if a capture has waits)",
		CLI_TEXT(struct opts, event) },
	{ 0, "unit", "UNIT", "of folded lines (default: ns), and of periods of events other than offcpu-time",
		CLI_WORD(struct opts, unit, units) },
	{ 'j', "json", NULL, "one JSON object; times in ns", CLI_VALUE(struct opts, format, DIFFERENCE_JSON),
		.group = 1 },
	{ 0, "tsv", NULL, "lines with tabs, the first with their names; times in ns",
		CLI_VALUE(struct opts, format, DIFFERENCE_TSV), .group = 1 },
	{ 0, "folded", NULL, "folded lines with both sums, for a differential flame graph",
		CLI_VALUE(struct opts, format, FORMAT_FOLDED), .group = 1 },
	{ 0, "width", "N", "columns of the table (default: the terminal's, or 80)",
		CLI_NUMBER(struct opts, width), .min = 40, .max = 10000 },
	{ .arg = "BEFORE", CLI_FILE(struct opts, paths[DIFFERENCE_BEFORE]), .required = true },
	{ .arg = "AFTER", CLI_FILE(struct opts, paths[DIFFERENCE_AFTER]), .required = true },
};

static int check(const struct cli *c, void *opts)
{
	struct opts *o = opts;
	struct err e;

	if (strcmp(o->paths[0], "-") == 0 && strcmp(o->paths[1], "-") == 0)
		return cli_usage(c, "BEFORE and AFTER cannot both be standard input");
	if (o->format == FORMAT_FOLDED && (o->by || o->top))
		return cli_usage(c, "--folded and %s exclude one another", o->by ? "--by" : "--top");
	if (o->kinds && source_check_kinds(o->paths, DIFFERENCE_SIDES, &e) != 0)
		return cli_usage(c, "%s", e.msg);
	o->difference.by = rankings[o->by];
	return CLI_OK;
}

static const struct cli cli = {
	.name = "stackdiff",
	.about = "Show which places wait longer or shorter than before. BEFORE and AFTER are captures, the "
		 "text of symbolize or perf script, or folded lines; one of them may be -, stdin.",
	.status = "Exit status: 0 complete, whether there are differences or not, 1 incomplete or no wait, "
		  "2 failed, 64 bad usage.",
	CLI_OPTIONS(options),
	.check = check,
};

/* A recording while it is compared. */
struct side {
	const char *path;
	struct source source;
	struct paragraphs *in;
	struct waits waits;
	struct waits_stacks stacks; /* --folded */
};

/* Read a side. EVENT: NULL for its first one. */
static int read_side(const struct opts *o, struct side *s, const char *event, struct err *e)
{
	const struct waits_selection select = { .event = event,
		.kinds = o->difference.kinds,
		.no_idle = !o->difference.idle && !o->difference.kinds };
	int code = paragraphs_open(&s->path, 1, &s->in, e);

	if (code)
		return code;
	paragraphs_open_with(s->in, source_open, &s->source);
	if (o->format == FORMAT_FOLDED) {
		code = waits_fold(&s->waits, &s->stacks, s->in, o->unit, &select, e);
	} else {
		code = waits_read(
			&s->waits, s->in, &(struct waits_opts){ .unit = o->unit, .event = event }, e);
	}
	return code ? code : source_end(&s->source, e);
}

/* Both sides; the second one of the first one's event. */
static int read_sides(const struct opts *o, struct side *sides, struct err *e)
{
	_cleanup_free_ char *event = NULL;
	const char *name;
	size_t len;
	int code = read_side(o, &sides[0], o->event, e);

	if (code)
		return code;
	name = waits_string(&sides[0].waits, sides[0].waits.event, &len);
	event = strndup(o->event ? o->event : name, o->event ? strlen(o->event) : len);
	if (!event)
		return err_nomem(e, "the name of an event");
	return read_side(o, &sides[1], *event ? event : NULL, e);
}

/* Report what a side lacks. Returns the exit status. */
static int report(const struct side *s)
{
	const struct waits *w = &s->waits;
	const char *name = waits_file_name(s->path), *text;
	int status = s->source.incomplete ? CLI_INCOMPLETE : CLI_OK;
	struct err e = { 0 };
	size_t len;

	if (waits_filtered(w, &e) && w->n_records)
		cli_warn(&cli, "'%s': %s", name, e.msg);
	if (waits_malformed(w, cli.name, &e)) {
		cli_error(&cli, &e);
		status = CLI_INCOMPLETE;
	}
	if (w->damaged && !s->source.incomplete) {
		text = waits_string(w, w->damaged, &len);
		cli_warn(&cli, "the recording of '%s' is %s: %.*s", name, format_damaged(w), (int)len, text);
	}
	if (w->n_lost && !s->source.incomplete) {
		text = waits_string(w, w->lost[0].name, &len);
		cli_warn(&cli, "the recorder of '%s' lost something: %.*s %llu%s", name, (int)len, text,
			(unsigned long long)w->lost[0].count, w->n_lost > 1 ? ", and more" : "");
	}
	return w->damaged || w->n_lost ? CLI_INCOMPLETE : status;
}

/* Why there is nothing on a side. */
static void report_nothing(const struct side *s)
{
	const struct waits *w = &s->waits;
	const char *name = waits_file_name(s->path), *event, *other;
	size_t event_len, other_len;
	struct err e = { 0 };

	if (!w->n_records && w->other) {
		event = waits_string(w, w->event, &event_len);
		other = waits_string(w, w->other, &other_len);
		err_set(&e, -ENOENT, "no record of '%s' is of event '%.*s'; the first one is of '%.*s'", name,
			(int)event_len, event, (int)other_len, other);
		err_hint(&e, "both sides must be of one event: --event chooses it");
	} else {
		err_set(&e, -ENOENT, "no wait in '%s'", name);
	}
	if (!w->n_malformed)
		cli_error(&cli, &e);
}

static int print_stacks(
	const struct opts *o, struct side *const s[DIFFERENCE_SIDES], struct out *out, struct err *e)
{
	const struct waits_stacks *stacks[] = { &s[0]->stacks, &s[1]->stacks };
	const struct difference_scale scale = { .of_ns = s[1]->waits.elapsed_ns,
		.elapsed_ns = { s[0]->waits.elapsed_ns, s[1]->waits.elapsed_ns },
		.by_time = !o->difference.absolute && s[0]->waits.elapsed_ns && s[1]->waits.elapsed_ns,
		.parts = 1 };

	for (int i = 0; i < DIFFERENCE_SIDES && o->difference.kinds; i++) {
		if (!s[i]->waits.has_kind)
			return err_set(e, -ENOENT, "the waits of '%s' have no kind, so none can be chosen",
				waits_file_name(s[i]->path));
	}
	if (!s[0]->stacks.lines.n && !s[1]->stacks.lines.n)
		return err_set(e, -ENOENT, "no wait is of the kinds that are compared");
	if (s[0]->waits.has_kind != s[1]->waits.has_kind && !o->difference.idle)
		cli_warn(&cli,
			"'%s' has no kinds: its idle waits are compared; with --idle those of '%s' are too",
			waits_file_name(s[s[0]->waits.has_kind]->path),
			waits_file_name(s[s[1]->waits.has_kind]->path));
	return difference_fold(out, stacks, &scale, e);
}

static int print_rows(
	const struct opts *o, struct side *const s[DIFFERENCE_SIDES], struct out *out, struct err *e)
{
	const struct waits *waits[] = { &s[0]->waits, &s[1]->waits };
	const struct difference_print p = { .format = (enum difference_format)o->format,
		.by = o->difference.by,
		.top = o->top                          ? o->top
		       : o->format == DIFFERENCE_TABLE ? TOP
						       : 0,
		.width = format_width(o->width),
		.paths = o->paths,
		.absolute = o->difference.absolute };
	struct difference d;
	int code = difference_make(&d, waits, &o->difference, e);

	if (!code)
		code = difference_print(out, &p, &d, e);
	difference_free(&d);
	return code;
}

static int compare(const struct opts *o, struct side *const s[DIFFERENCE_SIDES], struct err *e)
{
	static const char *const words[] = { [WAITS_UNIT_AUTO] = "periods",
		[WAITS_UNIT_NS] = "ns",
		[WAITS_UNIT_US] = "us",
		[WAITS_UNIT_MS] = "ms",
		[WAITS_UNIT_COUNT] = "waits" };
	const struct waits *a = &s[0]->waits, *b = &s[1]->waits;
	struct out out = { 0 };
	int code;

	if (a->is_time != b->is_time) {
		err_set(e, -EINVAL, "'%s' has %s and '%s' has %s: they cannot be compared",
			waits_file_name(s[0]->path), a->is_time ? "times" : words[a->unit],
			waits_file_name(s[1]->path), b->is_time ? "times" : words[b->unit]);
		err_hint(e, "--unit is of folded lines and of periods");
		return -EINVAL;
	}
	if (!o->difference.absolute && !(a->elapsed_ns && b->elapsed_ns) &&
		(o->format == DIFFERENCE_TSV || o->format == FORMAT_FOLDED))
		cli_warn(&cli, "the time of the recording is not known of '%s': the sums are not normalised",
			waits_file_name(s[a->elapsed_ns ? 1 : 0]->path));
	code = out_init(&out, STDOUT_FILENO, e);
	if (!code)
		code = o->format == FORMAT_FOLDED ? print_stacks(o, s, &out, e) : print_rows(o, s, &out, e);
	if (!code)
		code = out_flush(&out, e);
	out_free(&out);
	return code;
}

/* The result and the status; CLI_FAILED with the message in E. */
static int answer(const struct opts *o, struct side *const s[DIFFERENCE_SIDES], struct err *e)
{
	bool nothing = false;
	int code = 0, status = CLI_OK;

	for (int i = 0; i < DIFFERENCE_SIDES; i++) {
		if (waits_other_input(&s[i]->waits, cli.name, e))
			return CLI_FAILED;
		nothing |= !s[i]->waits.n_records;
	}
	if (!nothing)
		code = compare(o, s, e);
	if (code && code != -ENOENT)
		return CLI_FAILED;
	for (int i = 0; i < DIFFERENCE_SIDES; i++) {
		if (!s[i]->waits.n_records)
			report_nothing(s[i]);
		if (report(s[i]) != CLI_OK)
			status = CLI_INCOMPLETE;
	}
	if (code)
		cli_error(&cli, e); /* nothing is of that kind */
	return code || nothing ? CLI_INCOMPLETE : status;
}

static int run(void *opts, struct err *e)
{
	const struct opts *o = opts;
	struct side sides[DIFFERENCE_SIDES] = { 0 };
	int status = CLI_FAILED;

	for (int i = 0; i < DIFFERENCE_SIDES; i++) {
		sides[i].path = o->paths[i];
		sides[i].source.pid = -1;
		sides[i].source.kinds = o->kinds;
	}
	if (read_sides(o, sides, e) == 0)
		status = answer(o, (struct side *const[]){ &sides[0], &sides[1] }, e);
	for (int i = 0; i < DIFFERENCE_SIDES; i++) {
		paragraphs_close(sides[i].in);
		source_close(&sides[i].source);
		waits_stacks_free(&sides[i].stacks);
		waits_free(&sides[i].waits);
	}
	return status;
}

int main(int argc, char *argv[])
{
	struct opts o = { 0 };

	return cli_main(&cli, argc, argv, &o, run);
}
