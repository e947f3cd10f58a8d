/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bpfcheck - can this machine record, and what mends it where it cannot. */
#include "capreport.h"
#include "cli.h"
#include "diagnosis.h"
#include "json.h"
#include "out.h"
#include "root.h"
#include "tap.h"
#include "text.h"

#include <getopt.h>
#include <string.h>

#define LIVE_LIMIT_MS 5000
#define CAPS_LIMIT_MS 60000
#define COLUMNS 80
/* Of the terminal's columns, what stands before a finding. */
#define INDENT 21

static const struct cli cli = {
	.name = "bpfcheck",
	.synopsis = "[-v|-q|--tap|--json] [--tool NAME] [--caps | --root DIR]",
	.help = "Check what this machine lets the tools do, and say what mends the rest.\n"
		"\n"
		"  -v, --verbose    show every check, not only what is wrong\n"
		"  -q, --quiet      show the verdicts only, a line each\n"
		"      --tap        one test a check, for prove(1)\n"
		"      --json       one object with everything\n"
		"      --tool NAME  the verdict of that tool decides the exit status\n"
		"      --caps       find by trying which capabilities every step and tool takes\n"
		"      --root DIR   look at a recorded tree (proc, sys, boot) in DIR\n"
		"  -h, --help       this text\n"
		"  -V, --version    the version\n"
		"\n"
		"Exit status: 0 every tool is ready, 1 some are degraded, 2 some are impossible;\n"
		"with --caps 0 found for every tool, 1 something is left open, 2 nothing tried.\n",
};

enum format { TEXT, VERBOSE, QUIET, TAP, JSON };

struct opts {
	enum format format;
	int tool; /* enum finding_tool; -1 = all */
	const char *root;
	bool caps;
};

/* S on stdout, escaped. */
static void put(const char *s, enum text_style style)
{
	char buf[TEXT_ESCAPED_MAX(1024)];

	text_escape(buf, sizeof(buf), s, strlen(s), style);
	fputs(buf, stdout);
}

static void put_mend(unsigned int indent, const char *remedy)
{
	if (!remedy[0])
		return;
	printf("%*smend: ", (int)indent, "");
	put(remedy, TEXT_LINE);
	putchar('\n');
}

/* "FAIL" stands out among "ok" and "warn" also without colour. */
static const char *shown_status(enum finding_status status)
{
	return status == FINDING_FAIL ? "FAIL" : finding_status_name(status);
}

static void put_finding(const char *group, const struct finding *fi)
{
	printf("%-14s %-5s ", group, shown_status(fi->status));
	put(fi->found, TEXT_LINE);
	putchar('\n');
	put_mend(INDENT, fi->remedy);
}

/* What is in order in one line: the first finding, and how many more. */
static void put_fine(const char *group, const struct finding *first, size_t fine, size_t skipped)
{
	char more[64] = "", line[1024], shown[TEXT_ESCAPED_MAX(sizeof(line))];
	size_t room;

	if (fine > 1 && skipped)
		snprintf(more, sizeof(more), ", %zu more; %zu not checked", fine - 1, skipped);
	else if (fine > 1)
		snprintf(more, sizeof(more), ", %zu more", fine - 1);
	else if (skipped)
		snprintf(more, sizeof(more), "; %zu not checked", skipped);
	text_escape(shown, sizeof(shown), first->found, strlen(first->found), TEXT_LINE);
	room = COLUMNS - 1 - INDENT - strlen(more);
	if (strlen(shown) > room) {
		size_t at = room - 3;

		while (at && ((unsigned char)shown[at] & 0xc0) == 0x80)
			at--;
		strcpy(shown + at, "...");
	}
	printf("%-14s %-5s %s%s\n", group, "ok", shown, more);
}

static void put_group(const struct findings *f, enum finding_group group)
{
	const char *name = finding_group_name(group);
	const struct finding *first = NULL, *skip = NULL;
	size_t fine = 0, skipped = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct finding *fi = &f->list[i];

		if (fi->group != group)
			continue;
		if (fi->status == FINDING_OK) {
			first = first ? first : fi;
			fine++;
		} else if (fi->status == FINDING_SKIP) {
			skip = skip ? skip : fi;
			skipped++;
		}
	}
	if (first) {
		put_fine(name, first, fine, skipped);
		name = "";
	} else if (skip) {
		printf("%-14s %-5s ", name, "skip");
		put(skip->found, TEXT_LINE);
		putchar('\n');
		name = "";
	}
	for (size_t i = 0; i < f->n; i++) {
		if (f->list[i].group != group || f->list[i].status == FINDING_OK ||
			f->list[i].status == FINDING_SKIP)
			continue;
		put_finding(name, &f->list[i]);
		name = "";
	}
}

static bool counts(const struct opts *o, enum finding_tool tool)
{
	return o->tool < 0 || o->tool == (int)tool;
}

static void put_verdicts(const struct diagnosis *d, const struct opts *o)
{
	for (enum finding_tool tool = 0; tool < TOOL_COUNT; tool++) {
		const struct verdict *v = &d->verdicts[tool];

		if (!counts(o, tool))
			continue;
		printf("%-17s %s%s", finding_tool_name(tool), verdict_name(v->state), v->why[0] ? ": " : "");
		put(v->why, TEXT_LINE);
		if (o->format == QUIET && v->remedy[0]) {
			fputs("; mend: ", stdout);
			put(v->remedy, TEXT_LINE);
		}
		putchar('\n');
		if (o->format != QUIET)
			put_mend(18, v->remedy);
	}
}

static void print_text(const struct diagnosis *d, const struct opts *o)
{
	const struct findings *f = &d->findings;

	if (o->format == VERBOSE) {
		for (size_t i = 0; i < f->n; i++)
			put_finding(finding_group_name(f->list[i].group), &f->list[i]);
	} else if (o->format == TEXT) {
		for (enum finding_group group = 0; group < GROUP_COUNT; group++)
			put_group(f, group);
	}
	if (o->format != QUIET)
		putchar('\n');
	put_verdicts(d, o);
}

/* S for a TAP line: a '#' there would begin a directive. BUF holds TEXT_ESCAPED_MAX of it. */
static const char *tap_text(const char *s, char *buf, size_t cap)
{
	char escaped[TEXT_ESCAPED_MAX(sizeof(((struct finding *)0)->remedy))];
	size_t at = 0;

	text_escape(escaped, sizeof(escaped), s, strlen(s), TEXT_LINE);
	for (const char *p = escaped; *p && at + 5 < cap; p++) {
		if (*p == '#')
			at += (size_t)snprintf(buf + at, cap - at, "\\x23");
		else
			buf[at++] = *p;
	}
	buf[at] = '\0';
	return buf;
}

static void print_tap(const struct diagnosis *d, const struct opts *o)
{
	char found[8192], remedy[8192];
	struct tap t = { 0 };

	for (size_t i = 0; i < d->findings.n; i++) {
		const struct finding *fi = &d->findings.list[i];

		tap_text(fi->found, found, sizeof(found));
		tap_text(fi->remedy, remedy, sizeof(remedy));
		if (fi->status == FINDING_SKIP)
			tap_skip(&t, fi->id, "%s", found);
		else
			tap_ok(&t, fi->status != FINDING_FAIL, "%s: %s", fi->id, found);
		if (fi->status == FINDING_WARN)
			tap_diag("warning: %s", found);
		if (fi->status != FINDING_OK && remedy[0])
			tap_diag("mend: %s", remedy);
	}
	for (enum finding_tool tool = 0; tool < TOOL_COUNT; tool++)
		if (counts(o, tool))
			tap_diag("%s is %s", finding_tool_name(tool), verdict_name(d->verdicts[tool].state));
	tap_done(&t);
}

/* What no text was given for is null. */
static void put_member(struct json *j, const char *name, const char *value)
{
	json_str(j, name, value[0] ? value : NULL);
}

/* A check and a tool is a line each. */
static void put_checks(struct json *j, const struct findings *f)
{
	json_begin(j, "checks", '[');
	for (size_t i = 0; i < f->n; i++) {
		const struct finding *fi = &f->list[i];

		json_line(j, 4);
		json_begin(j, NULL, '{');
		json_str(j, "id", fi->id);
		json_str(j, "group", finding_group_name(fi->group));
		json_str(j, "status", finding_status_name(fi->status));
		json_str(j, "found", fi->found);
		put_member(j, "remedy", fi->remedy);
		json_end(j, '}');
	}
	json_line(j, 2);
	json_end(j, ']');
}

static void put_tools(struct json *j, const struct diagnosis *d, const struct opts *o)
{
	json_begin(j, "tools", '[');
	for (enum finding_tool tool = 0; tool < TOOL_COUNT; tool++) {
		if (!counts(o, tool))
			continue;
		json_line(j, 4);
		json_begin(j, NULL, '{');
		json_str(j, "name", finding_tool_name(tool));
		json_str(j, "verdict", verdict_name(d->verdicts[tool].state));
		put_member(j, "why", d->verdicts[tool].why);
		put_member(j, "remedy", d->verdicts[tool].remedy);
		if (tool == TOOL_OFFCPU_RECORD)
			json_str(j, "mode", finding_mode_name(d->verdicts[tool].mode));
		json_end(j, '}');
	}
	json_line(j, 2);
	json_end(j, ']');
}

static void put_json(struct out *out, const struct diagnosis *d, const struct opts *o, int status)
{
	struct json j = { .o = out, .spaced = true };

	json_begin(&j, NULL, '{');
	json_line(&j, 2);
	json_u64(&j, "schema", 1);
	json_line(&j, 2);
	json_str(&j, "version", cli_version_string);
	json_line(&j, 2);
	json_str(&j, "root", d->machine.root->live ? "/" : d->machine.root->prefix);
	json_line(&j, 2);
	json_str(&j, "release", d->machine.release);
	json_line(&j, 2);
	json_begin(&j, "groups", '[');
	for (enum finding_group group = 0; group < GROUP_COUNT; group++)
		json_str(&j, NULL, finding_group_name(group));
	json_end(&j, ']');
	json_line(&j, 2);
	put_checks(&j, &d->findings);
	json_line(&j, 2);
	put_tools(&j, d, o);
	json_line(&j, 2);
	json_u64(&j, "status", (uint64_t)status);
	json_line(&j, 0);
	json_end(&j, '}');
	out_char(out, '\n');
}

/* Returns the exit status, with the story in E where the result could not be written. */
static int print_json(const struct diagnosis *d, const struct opts *o, int status, struct err *e)
{
	struct out out;
	int rc = out_init(&out, STDOUT_FILENO, e);

	if (rc)
		return CLI_FAILED;
	put_json(&out, d, o, status);
	rc = out_flush(&out, e);
	out_free(&out);
	return rc ? CLI_FAILED : status;
}

/* The status, and for what is not ready one line on stderr: stdout may be going to a program. */
static int conclude(const struct diagnosis *d, const struct opts *o)
{
	enum verdict_state worst = VERDICT_READY;
	char names[256] = "";

	for (enum finding_tool tool = 0; tool < TOOL_COUNT; tool++)
		if (counts(o, tool))
			worst = MAX(worst, d->verdicts[tool].state);
	for (enum finding_tool tool = 0; worst && tool < TOOL_COUNT; tool++) {
		size_t len = strlen(names);

		if (counts(o, tool) && d->verdicts[tool].state == worst)
			snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "",
				finding_tool_name(tool));
	}
	if (worst)
		cli_warn(&cli, "%s here: %s", verdict_name(worst), names);
	return worst == VERDICT_READY ? CLI_OK : worst == VERDICT_DEGRADED ? CLI_INCOMPLETE : CLI_FAILED;
}

static int run(const struct opts *o, struct err *e)
{
	struct root root = { .fd = -1 };
	struct diagnosis d = { 0 };
	int status;

	if (root_open(o->root, &root, e) != 0)
		return CLI_FAILED;
	if (diagnosis_run(&root, LIVE_LIMIT_MS, &d, e) != 0) {
		root_close(&root);
		return CLI_FAILED;
	}
	status = conclude(&d, o);
	if (o->format == TAP)
		print_tap(&d, o);
	else if (o->format == JSON)
		status = print_json(&d, o, status, e);
	else
		print_text(&d, o);
	diagnosis_free(&d);
	root_close(&root);
	return status;
}

static int print_caps(const struct captable *t, const struct opts *o, int status, struct err *e)
{
	static const enum capreport_style styles[] = {
		[TEXT] = CAPREPORT_TEXT, [VERBOSE] = CAPREPORT_VERBOSE, [QUIET] = CAPREPORT_QUIET
	};
	struct out out;
	int rc;

	if (o->format == TAP) {
		struct tap tap = { 0 };

		capreport_tap(t, &tap);
		tap_done(&tap);
		return status;
	}
	if (out_init(&out, STDOUT_FILENO, e) != 0)
		return CLI_FAILED;
	if (o->format == JSON)
		capreport_json(t, status, &out);
	else
		capreport_text(t, styles[o->format], &out);
	rc = out_flush(&out, e);
	out_free(&out);
	return rc ? CLI_FAILED : status;
}

static int run_caps(const struct opts *o, struct err *e)
{
	struct captable *t = NULL;
	int status;

	if (captable_run(o->tool, CAPS_LIMIT_MS, &t, e) != 0)
		return CLI_FAILED;
	status = captable_verdict(t);
	if (status)
		cli_warn(&cli,
			"not every tool's least capabilities could be found here: bpfcheck itself lacks "
			"some, or a step fails with all of them");
	status = print_caps(t, o, status, e);
	captable_free(t);
	return status;
}

static int find_tool(const char *name)
{
	for (enum finding_tool tool = 0; tool < TOOL_COUNT; tool++)
		if (strcmp(name, finding_tool_name(tool)) == 0)
			return (int)tool;
	return -1;
}

static int set_format(struct opts *o, enum format format)
{
	if (o->format != TEXT && o->format != format)
		return cli_usage(&cli, "only one of -v, -q, --tap and --json can be given");
	o->format = format;
	return 0;
}

/* 0, or the status to end with at once. *DONE: help or version was printed. */
static int parse(int argc, char **argv, struct opts *o, bool *done)
{
	enum { OPT_TAP = 256, OPT_JSON, OPT_TOOL, OPT_ROOT, OPT_CAPS };
	static const struct option longs[] = { { "verbose", no_argument, NULL, 'v' },
		{ "quiet", no_argument, NULL, 'q' }, { "tap", no_argument, NULL, OPT_TAP },
		{ "json", no_argument, NULL, OPT_JSON }, { "tool", required_argument, NULL, OPT_TOOL },
		{ "root", required_argument, NULL, OPT_ROOT }, { "caps", no_argument, NULL, OPT_CAPS },
		{ "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }, { 0 } };
	int c, rc = 0;

	opterr = 0;
	while (!rc && (c = getopt_long(argc, argv, ":vqhV", longs, NULL)) != -1) {
		switch (c) {
		case 'v':
			rc = set_format(o, VERBOSE);
			break;
		case 'q':
			rc = set_format(o, QUIET);
			break;
		case OPT_TAP:
			rc = set_format(o, TAP);
			break;
		case OPT_JSON:
			rc = set_format(o, JSON);
			break;
		case OPT_TOOL:
			o->tool = find_tool(optarg);
			if (o->tool < 0)
				rc = cli_usage(&cli, "no tool is called '%s'", optarg);
			break;
		case OPT_ROOT:
			o->root = optarg;
			break;
		case OPT_CAPS:
			o->caps = true;
			break;
		case 'h':
		case 'V':
			*done = true;
			return c == 'h' ? cli_help(&cli) : cli_version(&cli);
		default:
			rc = cli_bad_option(&cli, c, argv);
		}
	}
	if (!rc && optind < argc)
		rc = cli_usage(&cli, "unexpected argument '%s'", argv[optind]);
	if (!rc && o->caps && o->root)
		rc = cli_usage(&cli, "--caps tries things on this machine: it cannot be given with --root");
	return rc;
}

int main(int argc, char **argv)
{
	struct opts opts = { .tool = -1 };
	struct err err = { 0 };
	bool done = false;
	int rc = parse(argc, argv, &opts, &done);

	if (done || rc)
		return rc;
	rc = opts.caps ? run_caps(&opts, &err) : run(&opts, &err);
	if (err.code)
		cli_error(&cli, &err);
	return cli_finish(&cli, rc);
}
