/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fold - perf script text into folded lines, one a distinct stack */
#include "base/cli.h"
#include "base/out.h"
#include "fold/folding.h"

#include <errno.h>
#include <errno.h>
#include <getopt.h>
#include <string.h>

/* Installed it is stackfold: coreutils has another fold. So the name is the one that it was called by. */
static struct cli cli = {
	.name = "fold",
	.synopsis = "[options] [FILE...]",
	.help = "\n"
		"Fold the text of perf script or symbolize into one line a distinct stack:\n"
		"process;outermost;...;innermost SUM. Without FILE, or with -, read stdin.\n"
		"\n"
		"As stackcollapse-perf.pl has them:\n"
		"      --pid               process ID behind the process name\n"
		"      --tid               process and thread ID behind the process name\n"
		"      --kernel            _[k] behind kernel functions\n"
		"      --jit               _[j] behind functions of a perf map\n"
		"      --all               --kernel --jit\n"
		"      --addrs             the address of what has no symbol\n"
		"      --inline            expand inlined functions with addr2line\n"
		"      --context           with --inline: file and line of each\n"
		"      --event-filter=E    fold event E (default: the first one that comes)\n"
		"\n"
		"Beyond it:\n"
		"      --unit=UNIT         ns (default), us, ms: what periods in ns are printed in;\n"
		"                          count: sum how many waits there were instead\n"
		"      --threads           a first frame that names the thread\n"
		"      --delimit           - between user and kernel frames, -- before a waker\n"
		"      --reverse           innermost frame first\n"
		"      --min=V             leave out stacks whose sum is less (50, 10us, 5ms)\n"
		"      --top=N             only the N greatest\n"
		"  -h, --help              this text\n"
		"  -V, --version           the version\n",
};

enum {
	OPT_PID = 256,
	OPT_TID,
	OPT_KERNEL,
	OPT_JIT,
	OPT_ALL,
	OPT_ADDRS,
	OPT_INLINE,
	OPT_CONTEXT,
	OPT_EVENT,
	OPT_UNIT,
	OPT_THREADS,
	OPT_DELIMIT,
	OPT_REVERSE,
	OPT_MIN,
	OPT_TOP
};

struct opts {
	struct folding_opts folding;
	bool expand, context; /* --inline, --context */
	const char *min; /* read when the unit is known */
	struct foldtab_query query;
	const char *const *files;
	size_t n_files;
};

static int parse_unit(const char *s, struct opts *o, struct err *e)
{
	static const struct {
		const char *name;
		uint64_t divide;
		bool count;
	} units[] = { { "ns", 1, false }, { "us", 1000, false }, { "ms", 1000000, false },
		{ "count", 1, true } };

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (strcmp(s, units[i].name) == 0) {
			o->query.divide = units[i].divide;
			o->folding.by_count = units[i].count;
			return 0;
		}
	}
	return err_set(e, -EINVAL, "'%s' is no unit: ns, us, ms or count", s);
}

static int parse_min(const char *s, struct opts *o, struct err *e)
{
	uint64_t v;
	int code;

	if (o->folding.by_count)
		code = cli_u64(s, 0, UINT64_MAX, &v, e);
	else
		code = cli_duration(s, o->query.divide ? o->query.divide : 1, &v, e);
	if (!code)
		o->query.min = v;
	return code;
}

static int parse_top(const char *s, struct opts *o, struct err *e)
{
	uint64_t v;
	int code = cli_u64(s, 1, SIZE_MAX, &v, e);

	if (!code)
		o->query.top = (size_t)v;
	return code;
}

static int set_option(int opt, struct opts *o, struct err *e)
{
	switch (opt) {
	case OPT_PID:
		o->folding.pid = true;
		break;
	case OPT_TID:
		o->folding.tid = true;
		break;
	case OPT_KERNEL:
		o->folding.frames.kernel = true;
		break;
	case OPT_JIT:
		o->folding.frames.jit = true;
		break;
	case OPT_ALL:
		o->folding.frames.kernel = o->folding.frames.jit = true;
		break;
	case OPT_ADDRS:
		o->folding.frames.addrs = true;
		break;
	case OPT_INLINE:
		o->expand = true;
		break;
	case OPT_CONTEXT:
		o->context = true;
		break;
	case OPT_EVENT:
		o->folding.event = optarg;
		break;
	case OPT_THREADS:
		o->folding.threads = true;
		break;
	case OPT_DELIMIT:
		o->folding.delimit = true;
		break;
	case OPT_REVERSE:
		o->folding.reverse = o->query.reverse = true;
		break;
	case OPT_MIN:
		o->min = optarg;
		break;
	case OPT_UNIT:
		return parse_unit(optarg, o, e);
	case OPT_TOP:
		return parse_top(optarg, o, e);
	default:
		return 0;
	}
	return 0;
}

static void warn_event(const struct opts *o, const struct folding_report *r)
{
	if (!r->other)
		return;
	if (!o->folding.event || !o->folding.event[0])
		cli_warn(&cli,
			"only event '%s' is folded; %llu records of others are left out, the first of '%s'",
			r->event, (unsigned long long)r->filtered, r->other);
	else if (!r->records)
		cli_warn(&cli, "no record is of event '%s'; the first one is of '%s'", r->event, r->other);
}

/* Tell what is left out; the status that it means. */
static int tell(const struct opts *o, const struct folding_report *r, const struct foldtab_lines *l)
{
	bool nothing = o->folding.event && o->folding.event[0] && !r->records && r->other;
	struct err e = { 0 };

	warn_event(o, r);
	if (l->vanished)
		cli_warn(&cli, "%zu stacks are left out: less than half of the unit", l->vanished);
	if (!r->malformed)
		return nothing ? CLI_INCOMPLETE : CLI_OK;
	err_set(&e, -EINVAL,
		"%llu malformed lines or records are left out; the first is line %llu of '%s': %s",
		(unsigned long long)r->malformed, (unsigned long long)r->bad_line,
		strcmp(r->bad_path, "-") == 0 ? "standard input" : r->bad_path, r->bad_why);
	if (!r->records)
		err_hint(&e, "%s reads the text of symbolize, or of perf script after perf record -g",
			cli.name);
	cli_error(&cli, &e);
	return CLI_INCOMPLETE;
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

static int run(struct opts *o, struct err *e)
{
	struct foldtab_lines lines = { 0 };
	struct paragraphs *in = NULL;
	struct folding *f = NULL;
	int status = CLI_FAILED, code = 0;

	if (o->expand)
		code = inliner_new(o->context, &o->folding.frames.inliner, e);
	if (!code)
		code = paragraphs_open(o->files, o->n_files, &in, e);
	if (!code)
		code = folding_new(&o->folding, &f, e);
	if (!code)
		code = folding_run(f, in, e);
	if (!code)
		code = foldtab_lines(folding_table(f), &o->query, &lines, e);
	if (!code)
		code = print(&lines, e);
	if (!code)
		status = tell(o, folding_report(f), &lines);
	free(lines.lines);
	folding_free(f);
	paragraphs_close(in);
	inliner_free(o->folding.frames.inliner);
	return status;
}

int main(int argc, char *argv[])
{
	static const struct option longopts[] = { { "pid", 0, NULL, OPT_PID }, { "tid", 0, NULL, OPT_TID },
		{ "kernel", 0, NULL, OPT_KERNEL }, { "jit", 0, NULL, OPT_JIT }, { "all", 0, NULL, OPT_ALL },
		{ "addrs", 0, NULL, OPT_ADDRS }, { "inline", 0, NULL, OPT_INLINE },
		{ "context", 0, NULL, OPT_CONTEXT }, { "event-filter", 1, NULL, OPT_EVENT },
		{ "unit", 1, NULL, OPT_UNIT }, { "threads", 0, NULL, OPT_THREADS },
		{ "delimit", 0, NULL, OPT_DELIMIT }, { "reverse", 0, NULL, OPT_REVERSE },
		{ "min", 1, NULL, OPT_MIN }, { "top", 1, NULL, OPT_TOP }, { "help", 0, NULL, 'h' },
		{ "version", 0, NULL, 'V' }, { NULL, 0, NULL, 0 } };
	struct opts o = { 0 };
	struct err e = { 0 };
	int opt, status;

	opterr = 0;
	cli.name = program_invocation_short_name;
	while ((opt = getopt_long(argc, argv, ":hV", longopts, NULL)) != -1) {
		if (opt == 'h')
			return cli_help(&cli);
		if (opt == 'V')
			return cli_version(&cli);
		if (opt == '?' || opt == ':')
			return cli_bad_option(&cli, opt, argv);
		if (set_option(opt, &o, &e) != 0)
			return cli_usage(&cli, "%s", e.msg);
	}
	if (o.min && parse_min(o.min, &o, &e) != 0)
		return cli_usage(&cli, "%s", e.msg);
	o.files = (const char *const *)(argv + optind);
	o.n_files = (size_t)(argc - optind);
	status = run(&o, &e);
	if (status == CLI_FAILED)
		cli_error(&cli, &e);
	return cli_finish(&cli, status);
}
