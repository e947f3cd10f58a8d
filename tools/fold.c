/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fold - fold perf script text into one line per distinct stack */
#include "base/cli.h"
#include "base/out.h"
#include "fold/folding.h"

#include <errno.h>
#include <string.h>

enum unit { UNIT_NS, UNIT_US, UNIT_MS, UNIT_COUNT };
static const char *const units[] = { "ns", "us", "ms", "count", NULL };
static const char *const weights[] = {
	[FOLDING_BOTH] = "both", [FOLDING_BLOCKED] = "blocked", [FOLDING_RUNNABLE] = "runnable", NULL
};

struct opts {
	struct folding_opts folding;
	bool all; /* --all */
	bool expand, context; /* --inline, --context */
	enum unit unit;
	struct cli_list kinds; /* const char * */
	const char *min; /* parsed once the unit is known */
	struct foldtab_query query;
	struct cli_list files; /* const char * */
};

static const struct cli_option options[] = {
	{ CLI_HEADING("As stackcollapse-perf.pl has them") },
	{ 0, "pid", NULL, "process ID behind the process name", CLI_FLAG(struct opts, folding.pid) },
	{ 0, "tid", NULL, "process and thread ID behind the process name",
		CLI_FLAG(struct opts, folding.tid) },
	{ 0, "kernel", NULL, "_[k] behind kernel functions", CLI_FLAG(struct opts, folding.frames.kernel) },
	{ 0, "jit", NULL, "_[j] behind functions of a perf map", CLI_FLAG(struct opts, folding.frames.jit) },
	{ 0, "all", NULL, "--kernel --jit, and _[i] behind inlined functions", CLI_FLAG(struct opts, all) },
	{ 0, "addrs", NULL, "the address of what has no symbol",
		CLI_FLAG(struct opts, folding.frames.addrs) },
	{ 0, "inline", NULL, "expand inlined functions with addr2line", CLI_FLAG(struct opts, expand) },
	{ 0, "context", NULL, "with --inline: file and line of each", CLI_FLAG(struct opts, context) },
	{ 0, "event-filter", "EVENT", "fold this event (default: offcpu-time, if a capture has waits)",
		CLI_TEXT(struct opts, folding.event) },
	{ CLI_HEADING("Beyond it") },
	{ 0, "unit", "UNIT",
		"ns (default), us, ms: what periods in ns are printed in; count: sum how many waits there "
		"were "
		"instead",
		CLI_WORD(struct opts, unit, units) },
	{ 0, "weight", "WEIGHT",
		"what of a wait is summed: both (default), blocked: until its wake-up, runnable: on the run "
		"queue",
		CLI_WORD(struct opts, folding.weight, weights) },
	{ 0, "runnable", NULL, "time on the run queue below a frame [runnable], or [preempted]",
		CLI_FLAG(struct opts, folding.runnable) },
	{ 0, "wall", NULL, "waits and samples of the CPU, below [blocked], [runnable], [preempted], [on-CPU]",
		CLI_FLAG(struct opts, folding.wall) },
	{ 0, "side-by-side", NULL, "the same, and these are the outermost frames",
		CLI_FLAG(struct opts, folding.side_by_side) },
	{ 0, "kind", "LIST", "only waits of these kinds: disk-read,fsync", CLI_TEXTS(struct opts, kinds) },
	{ 0, "kind-frames", NULL,
		"the kind of a wait as the innermost frame, [lock], by which flame can colour",
		CLI_FLAG(struct opts, folding.kind_frames) },
	{ 0, "no-idle", NULL, "without waits of kind idle", CLI_FLAG(struct opts, folding.no_idle) },
	{ 0, "balanced", NULL, "cut the final arguments of a name only: templates and operators stay",
		CLI_FLAG(struct opts, folding.frames.balanced) },
	{ 0, "threads", NULL, "a first frame that names the thread", CLI_FLAG(struct opts, folding.threads) },
	{ 0, "wakers", NULL, "behind each stack --, who ended the wait, and so on",
		CLI_FLAG(struct opts, folding.wakers) },
	{ 0, "delimit", NULL, "- between user and kernel frames", CLI_FLAG(struct opts, folding.delimit) },
	{ 0, "reverse", NULL, "innermost frame first", CLI_FLAG(struct opts, folding.reverse) },
	{ 0, "min", "VALUE", "omit stacks whose sum is less (50, 10us, 5ms)", CLI_TEXT(struct opts, min) },
	{ 0, "top", "N", "only the N greatest", CLI_NUMBER(struct opts, query.top), .min = 1 },
	{ .arg = "FILE", CLI_FILES(struct opts, files) },
};

/* Is it a list of words, "disk-read,fsync"? Kinds are not checked by name: there may be others. */
static bool is_kind_list(const char *list)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

	for (const char *p = list;; p++) {
		size_t n = strspn(p, chars);

		p += n;
		if (!n || !*p || *p != ',')
			return n && !*p;
	}
}

static int check_kinds(const struct cli *c, struct opts *o)
{
	o->folding.kinds = o->kinds.p;
	o->folding.n_kinds = o->kinds.n;
	for (size_t i = 0; i < o->kinds.n; i++) {
		if (!is_kind_list(o->folding.kinds[i]))
			return cli_usage(c,
				"option '--kind': '%s' is not a list of kinds, such as disk-read,fsync",
				o->folding.kinds[i]);
	}
	return CLI_OK;
}

/* What sums anything but whole times of one event, or a part of them, does not add up to wall-clock time. */
static int check_wall(const struct cli *c, struct opts *o)
{
	const struct folding_opts *f = &o->folding;
	const char *mode = f->side_by_side ? "side-by-side" : "wall";
	const char *other = f->event                    ? "event-filter"
			    : f->by_count               ? "unit=count"
			    : f->weight != FOLDING_BOTH ? "weight"
			    : f->runnable               ? "runnable"
			    : o->kinds.n                ? "kind"
			    : f->wakers                 ? "wakers"
			    : f->kind_frames            ? "kind-frames"
							: NULL;

	o->folding.wall |= f->side_by_side;
	if (!f->wall)
		return CLI_OK;
	if (other)
		return cli_usage(c, "--%s and --%s exclude one another", mode, other);
	o->folding.event = "offcpu-time";
	o->folding.also = "cpu-clock";
	return CLI_OK;
}

/* --min is a count or a time, depending on --unit. */
static int check(const struct cli *c, void *opts)
{
	static const uint64_t divide[] = {
		[UNIT_NS] = 1, [UNIT_US] = 1000, [UNIT_MS] = 1000000, [UNIT_COUNT] = 1
	};
	struct opts *o = opts;
	uint64_t min = 0;
	struct err e;
	int rc = 0;

	o->query.divide = divide[o->unit];
	o->query.reverse = o->folding.reverse;
	o->folding.by_count = o->unit == UNIT_COUNT;
	o->folding.frames.kernel |= o->all;
	o->folding.frames.jit |= o->all;
	o->folding.frames.inlined = o->all;
	if (o->min)
		rc = o->folding.by_count ? cli_u64(o->min, 0, UINT64_MAX, &min, &e)
					 : cli_duration(o->min, o->query.divide, &min, &e);
	o->query.min = min;
	if (rc)
		return cli_usage(c, "option '--min': %s", e.msg);
	if (o->folding.weight != FOLDING_BOTH && (o->folding.by_count || o->folding.runnable))
		return cli_usage(c, "--weight=%s and %s exclude one another", weights[o->folding.weight],
			o->folding.by_count ? "--unit=count" : "--runnable");
	if (o->folding.wakers && o->folding.runnable)
		return cli_usage(c, "--wakers and --runnable exclude one another");
	if (o->folding.wakers && o->folding.kind_frames)
		return cli_usage(c, "--wakers and --kind-frames exclude one another");
	rc = check_wall(c, o);
	return rc ? rc : check_kinds(c, o);
}

/* If installed as stackfold, it uses that name. */
static struct cli cli = {
	.name = "fold",
	.about = "Fold the text of perf script or symbolize into one line a distinct stack: "
		 "process;outermost;...;innermost SUM. Without FILE, or with -, read stdin.",
	CLI_OPTIONS(options),
	.check = check,
};

static void warn_event(const struct opts *o, const struct folding_report *r)
{
	if (!r->other)
		return;
	if (!o->folding.event || !o->folding.event[0])
		cli_warn(&cli, "only event '%s' is folded; %llu %s skipped, the first of '%s'", r->event,
			(unsigned long long)r->filtered,
			r->filtered == 1 ? "record of another is" : "records of others are", r->other);
	else if (!r->records)
		cli_warn(&cli, "no record is of event '%s'; the first one is of '%s'", r->event, r->other);
}

/* Waits without runnable_ns: left out of --weight, whole in --runnable. Returns the exit status. */
static int report_runnable(const struct opts *o, const struct folding_report *r)
{
	const bool one = r->no_runnable == 1, left_out = o->folding.weight != FOLDING_BOTH;
	struct err e = { 0 };

	if (!r->no_runnable)
		return CLI_OK;
	err_set(&e, -ENODATA, "%llu %s no runnable_ns: %s", (unsigned long long)r->no_runnable,
		one ? "wait has" : "waits have",
		!left_out ? "time on the run queue is not shown apart"
		: one     ? "it is left out"
			  : "they are left out");
	err_hint(&e, "%s",
		r->has_comment ? "recorded by an older recorder, or in a mode that does not measure it"
			       : "only the text of symbolize has it, in the comment before each record");
	cli_error(&cli, &e);
	return left_out || !r->has_runnable ? CLI_INCOMPLETE : CLI_OK;
}

/* Waits that --kind left out because the text does not say of which kind they are, or all. */
static int report_kinds(const struct folding_report *r)
{
	struct err e = { 0 };

	if (r->no_kind) {
		err_set(&e, -ENODATA, "%llu %s no kind: %s left out", (unsigned long long)r->no_kind,
			r->no_kind == 1 ? "wait has" : "waits have", r->no_kind == 1 ? "it is" : "they are");
		err_hint(&e, "%s",
			r->has_comment
				? "this text was made by an older symbolize"
				: "only the text of symbolize has it, in the comment before each record");
		cli_error(&cli, &e);
		return CLI_INCOMPLETE;
	}
	if (r->folded || !r->other_kinds)
		return CLI_OK;
	cli_warn(&cli, "no wait is of these kinds; the first one is of kind '%s'", r->other_kind);
	return CLI_INCOMPLETE;
}

/* Without a waker --wakers folds nothing that fold without it does not. */
static int report_wakers(const struct opts *o, const struct folding_report *r)
{
	struct err e = { 0 };

	if (!o->folding.wakers || !r->folded || r->with_waker)
		return CLI_OK;
	err_set(&e, -ENODATA, "no wait has a waker");
	err_hint(&e, "they are in the text of symbolize, of what offcpu-record --wakers recorded");
	cli_error(&cli, &e);
	return CLI_INCOMPLETE;
}

/* --wall adds up to wall-clock time only if both were recorded. */
static int report_wall(const struct opts *o, const struct folding_report *r)
{
	struct err e = { 0 };

	if (!o->folding.wall || !r->folded || (r->samples && r->samples < r->folded))
		return CLI_OK;
	err_set(&e, -ENODATA, r->samples ? "no record is of a wait" : "no record is a sample of the CPU");
	err_hint(&e, "offcpu-record --on-cpu records both");
	cli_error(&cli, &e);
	return CLI_INCOMPLETE;
}

static int report_malformed(const struct folding_report *r)
{
	struct err e = { 0 };

	if (!r->malformed)
		return CLI_OK;
	err_set(&e, -EINVAL, "%llu malformed %s skipped; the first is line %llu of '%s': %s",
		(unsigned long long)r->malformed,
		r->malformed == 1 ? "line or record is" : "lines or records are",
		(unsigned long long)r->bad_line,
		strcmp(r->bad_path, "-") == 0 ? "standard input" : r->bad_path, r->bad_why);
	if (!r->records)
		err_hint(&e, "%s reads the text of symbolize, or of perf script after perf record -g",
			cli.name);
	cli_error(&cli, &e);
	return CLI_INCOMPLETE;
}

static int worse(int a, int b)
{
	return MAX(a, b);
}

/* Report what was skipped or omitted. Returns the exit status. */
static int report(const struct opts *o, const struct folding_report *r, const struct foldtab_lines *l)
{
	bool nothing = o->folding.event && o->folding.event[0] && !r->records && r->other;
	int status = nothing ? CLI_INCOMPLETE : CLI_OK;

	warn_event(o, r);
	if (l->vanished)
		cli_warn(&cli, "%zu %s omitted: less than half of the unit", l->vanished,
			l->vanished == 1 ? "stack is" : "stacks are");
	status = worse(status, report_runnable(o, r));
	status = worse(status, report_kinds(r));
	status = worse(status, report_wakers(o, r));
	status = worse(status, report_wall(o, r));
	return worse(status, report_malformed(r));
}

static int print(const struct foldtab_lines *l, struct err *e)
{
	struct out out;
	char digits[40];
	int code = out_init(&out, STDOUT_FILENO, e);

	for (size_t i = 0; !code && i < l->n; i++) {
		const struct foldtab_line *line = &l->lines[i];

		out_put(&out, line->part[0].p, line->part[0].len);
		out_put(&out, line->part[1].p, line->part[1].len);
		out_char(&out, ' ');
		out_put(&out, digits, foldtab_digits(line->value, digits));
		out_char(&out, '\n');
	}
	if (!code)
		code = out_flush(&out, e);
	out_free(&out);
	return code;
}

static int run(void *opts, struct err *e)
{
	struct opts *o = opts;
	struct foldtab_lines lines = { 0 };
	struct paragraphs *in = NULL;
	struct folding *f = NULL;
	int status = CLI_FAILED, code = 0;

	if (o->expand)
		code = inliner_new(o->context, &o->folding.frames.inliner, e);
	if (!code)
		code = paragraphs_open(o->files.p, o->files.n, &in, e);
	if (!code)
		code = folding_new(&o->folding, &f, e);
	if (!code)
		code = folding_run(f, in, e);
	if (!code)
		code = foldtab_lines(folding_table(f), &o->query, &lines, e);
	if (!code)
		code = print(&lines, e);
	if (!code)
		status = report(o, folding_report(f), &lines);
	free(lines.lines);
	folding_free(f);
	paragraphs_close(in);
	inliner_free(o->folding.frames.inliner);
	return status;
}

int main(int argc, char *argv[])
{
	struct opts o = { 0 };

	if (strcmp(program_invocation_short_name, "stackfold") == 0)
		cli.name = "stackfold";
	return cli_main(&cli, argc, argv, &o, run);
}
