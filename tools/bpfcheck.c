/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bpfcheck - whether this machine can record, and how to fix it if it cannot. */
#include "base/cli.h"
#include "base/fs.h"
#include "base/out.h"
#include "base/tap.h"
#include "check/bundle.h"
#include "check/least_privileges.h"
#include "check/probe.h"
#include "check/report.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define LIVE_LIMIT_MS 5000
#define CAPS_LIMIT_MS 120000
#define PIDS_MAX 256

enum format { TEXT, VERBOSE, QUIET, TAP, JSON };

struct opts {
	enum format format;
	int tool; /* enum finding_tool; -1 = all */
	const char *root;
	const char *bundle; /* NULL = none */
	bool caps;
	struct cli_list pids; /* uint32_t */
};

static const struct cli_option options[] = {
	{ 'v', "verbose", NULL, "show every check, not only what is wrong",
		CLI_VALUE(struct opts, format, VERBOSE), .group = 1 },
	{ 'q', "quiet", NULL, "show the verdicts only, a line each", CLI_VALUE(struct opts, format, QUIET),
		.group = 1 },
	{ 0, "tap", NULL, "one test a check, for prove(1)", CLI_VALUE(struct opts, format, TAP), .group = 1 },
	{ 0, "json", NULL, "one object with everything", CLI_VALUE(struct opts, format, JSON), .group = 1 },
	{ 'p', "pid", "PID", "what offcpu-record will show of that process, too; 1,2,3: of these",
		CLI_PIDS(struct opts, pids), .times = PIDS_MAX },
	{ 0, "tool", "NAME", "the verdict of that tool decides the exit status",
		CLI_WORD(struct opts, tool, finding_tool_names) },
	{ 0, "caps", NULL, "find by trying which capabilities every step and tool takes",
		CLI_FLAG(struct opts, caps), .group = 2 },
	{ 0, "bundle", "FILE", "write an archive for a bug report, without secrets, and list its contents",
		CLI_FILE(struct opts, bundle), .group = 2 },
	{ 0, "root", "DIR", "check a recorded tree (proc, sys, boot) in DIR", CLI_DIR(struct opts, root),
		.group = 2 },
};

static int check(const struct cli *c, void *opts)
{
	const struct opts *o = opts;

	if (o->bundle && o->format != TEXT)
		return cli_usage(c, "--bundle goes alone: it holds what the others print about this machine");
	if (o->pids.n && (o->root || o->caps))
		return cli_usage(c, "--pid and %s do not go together: a process is one of this machine",
			o->root ? "--root" : "--caps");
	return CLI_OK;
}

static const struct cli cli = {
	.name = "bpfcheck",
	.about = "Check what the tools can do on this machine, and how to fix the rest.",
	.status = "Exit status: 0 every tool is ready, 1 some are degraded, 2 some are impossible; with "
		  "--caps 0 "
		  "found for every tool, 1 something is left open, 2 nothing tried.",
	CLI_OPTIONS(options),
	.check = check,
};

static bool counts(const struct opts *o, enum finding_tool tool)
{
	return o->tool < 0 || o->tool == (int)tool;
}

/* Returns the status. Prints what is not ready in one line on stderr: a program may be reading stdout. */
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

struct printing {
	struct out out;
	struct tap tap;
};

static int begin_print(struct printing *p, struct err *e)
{
	return out_init(&p->out, STDOUT_FILENO, e);
}

/* Returns STATUS, or CLI_FAILED with the message in E if the result could not be written. */
static int end_print(struct printing *p, int status, struct err *e)
{
	int rc = out_flush(&p->out, e);

	out_free(&p->out);
	if (p->tap.run)
		tap_done(&p->tap);
	return rc ? CLI_FAILED : status;
}

static int print(const struct diagnosis *d, const struct opts *o, int status, struct err *e)
{
	static const enum diagreport_style styles[] = {
		[TEXT] = DIAGREPORT_TEXT, [VERBOSE] = DIAGREPORT_VERBOSE, [QUIET] = DIAGREPORT_QUIET
	};
	struct printing p = { 0 };

	if (begin_print(&p, e) != 0)
		return CLI_FAILED;
	if (o->format == TAP)
		diagreport_tap(d, o->tool, &p.tap);
	else if (o->format == JSON)
		diagreport_json(d, o->tool, status, &p.out);
	else
		diagreport_text(d, styles[o->format], o->tool, &p.out);
	return end_print(&p, status, e);
}

/* Run the diagnosis. B (may be NULL) notes the files that are read. */
static int diagnose(
	const struct opts *o, struct root *root, struct bundle *b, struct diagnosis *d, struct err *e)
{
	int rc = root_open(o->root, root, e);

	if (rc)
		return rc;
	if (b)
		bundle_watch(b, root);
	rc = diagnosis_run(root,
		&(struct diagnosis_opts){ .limit_ms = LIVE_LIMIT_MS,
			.all = o->format == VERBOSE || o->bundle,
			.pids = o->pids.p,
			.n_pids = o->pids.n },
		d, e);
	if (rc)
		root_close(root);
	return rc;
}

static int run(const struct opts *o, struct err *e)
{
	struct root root = { .fd = -1 };
	struct diagnosis d = { 0 };
	int status;

	if (diagnose(o, &root, NULL, &d, e) != 0)
		return CLI_FAILED;
	status = print(&d, o, conclude(&d, o), e);
	diagnosis_free(&d);
	root_close(&root);
	return status;
}

/* The output of --json or -v as bytes, collected in a memfd. */
static char *report_text(const struct diagnosis *d, bool json, int status, size_t *len, struct err *e)
{
	_cleanup_close_ int fd = memfd_create("report", MFD_CLOEXEC);
	struct out out = { 0 };
	char *text = NULL;
	off_t size;

	if (fd < 0 || out_init(&out, fd, e) != 0) {
		err_sys(e, -errno, "cannot keep the report");
		return NULL;
	}
	if (json)
		diagreport_json(d, -1, status, &out);
	else
		diagreport_text(d, DIAGREPORT_VERBOSE, -1, &out);
	if (out_flush(&out, e) == 0 && (size = lseek(fd, 0, SEEK_END)) > 0 && (text = malloc((size_t)size)))
		*len = (size_t)pread(fd, text, (size_t)size, 0);
	out_free(&out);
	return text;
}

static int write_bundle(const struct opts *o, const struct bundle *b, const struct root *root,
	const struct diagnosis *d, struct err *e)
{
	size_t json_len = 0, text_len = 0;
	_cleanup_free_ char *json = report_text(d, true, 0, &json_len, e);
	_cleanup_free_ char *text = report_text(d, false, 0, &text_len, e);
	const struct bundle_text texts[] = { { "bpfcheck.json", json, json_len },
		{ "bpfcheck.txt", text, text_len } };
	struct buf list = { 0 };
	int rc = json && text ? bundle_write(b, root, texts, ARRAY_LEN(texts), o->bundle, &list, e) : -EIO;

	/* standard output may be the archive itself */
	if (!rc)
		fwrite(list.p, 1, list.len, strcmp(o->bundle, "-") == 0 ? stderr : stdout);
	buf_free(&list);
	return rc ? CLI_FAILED : CLI_OK;
}

static int run_bundle(const struct opts *o, struct err *e)
{
	struct root root = { .fd = -1 };
	struct bundle bundle = { 0 };
	struct diagnosis d = { 0 };
	int status = CLI_FAILED;

	if (diagnose(o, &root, &bundle, &d, e) == 0) {
		status = write_bundle(o, &bundle, &root, &d, e);
		diagnosis_free(&d);
		root_close(&root);
	}
	bundle_free(&bundle);
	return status;
}

static int print_caps(const struct priv_table *t, const struct opts *o, int status, struct err *e)
{
	static const enum priv_report_style styles[] = {
		[TEXT] = PRIV_REPORT_TEXT, [VERBOSE] = PRIV_REPORT_VERBOSE, [QUIET] = PRIV_REPORT_QUIET
	};
	struct printing p = { 0 };

	if (begin_print(&p, e) != 0)
		return CLI_FAILED;
	if (o->format == TAP)
		priv_report_tap(t, &p.tap);
	else if (o->format == JSON)
		priv_report_json(t, status, &p.out);
	else
		priv_report_text(t, styles[o->format], &p.out);
	return end_print(&p, status, e);
}

static int run_caps(const struct opts *o, struct err *e)
{
	struct priv_table *t = NULL;
	int status;

	if (priv_table_run(o->tool, probe_limit_ms(CAPS_LIMIT_MS), &t, e) != 0)
		return CLI_FAILED;
	status = priv_table_verdict(t);
	if (status)
		cli_warn(&cli,
			"not every tool's least capabilities could be found here: bpfcheck itself lacks "
			"some, or a step fails with all of them");
	status = print_caps(t, o, status, e);
	priv_table_free(t);
	return status;
}

int main(int argc, char **argv)
{
	struct opts opts = { .tool = -1 };
	struct err err = { 0 };
	int rc;

	if (!cli_parse(&cli, argc, argv, &opts, &rc))
		return rc;
	rc = opts.caps ? run_caps(&opts, &err) : opts.bundle ? run_bundle(&opts, &err) : run(&opts, &err);
	if (err.code)
		cli_error(&cli, &err);
	cli_free(&cli, &opts);
	return cli_finish(&cli, rc);
}
