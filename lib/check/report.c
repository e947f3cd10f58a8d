/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/report.h"
#include "base/cli.h"
#include "base/json.h"
#include "base/text.h"
#include "check/btf.h"
#include "check/live.h"
#include "check/names.h"
#include "check/settings.h"
#include "check/target.h"

#include <string.h>

/* The first finding that forbids the tool is the cause: later ones mostly follow from it. */
static void judge(const struct findings *f, enum finding_tool tool, struct verdict *v)
{
	for (size_t i = 0; i < f->n && v->state != VERDICT_IMPOSSIBLE; i++) {
		const struct finding *fi = &f->list[i];
		bool forbids = fi->forbids & TOOL_BIT(tool), degrades = fi->degrades & TOOL_BIT(tool);

		if (!forbids && (!degrades || v->state == VERDICT_DEGRADED))
			continue;
		v->state = forbids ? VERDICT_IMPOSSIBLE : VERDICT_DEGRADED;
		snprintf(v->why, sizeof(v->why), "%s", fi->found);
		snprintf(v->remedy, sizeof(v->remedy), "%s", fi->remedy);
	}
}

enum finding_mode diagnosis_mode(const struct findings *f)
{
	unsigned int barred = 0;
	enum finding_mode mode = MODE_BTF;

	for (size_t i = 0; i < f->n; i++)
		barred |= f->list[i].bars;
	while (mode < MODE_COUNT && (barred & MODE_BIT(mode)))
		mode++;
	return mode;
}

/* The first finding that bars every mode better than MODE; else the first that bars the next better one. */
static const struct finding *cause(const struct findings *f, enum finding_mode mode)
{
	const unsigned int better = MODE_BIT(mode) - 1;
	const struct finding *first = NULL;

	for (size_t i = 0; i < f->n; i++) {
		if ((f->list[i].bars & better) == better)
			return &f->list[i];
		if (!first && (f->list[i].bars & MODE_BIT(mode - 1)))
			first = &f->list[i];
	}
	return first;
}

/* A lesser mode is reported in place of all other degradations: it costs most. */
static void judge_recorder(const struct findings *f, struct verdict *v)
{
	static const char *const means[MODE_COUNT + 1] = { "",
		"raw mode: ", "procfs mode (samples of /proc, not every wait): ", "" };
	const struct finding *fi;

	v->mode = diagnosis_mode(f);
	judge(f, TOOL_OFFCPU_RECORD, v);
	fi = v->mode == MODE_BTF || v->state == VERDICT_IMPOSSIBLE ? NULL : cause(f, v->mode);
	if (v->state == VERDICT_IMPOSSIBLE)
		v->mode = MODE_COUNT;
	if (!fi)
		return;
	v->state = v->mode == MODE_COUNT ? VERDICT_IMPOSSIBLE : VERDICT_DEGRADED;
	snprintf(v->why, sizeof(v->why), "%s%.420s", means[v->mode], fi->found);
	snprintf(v->remedy, sizeof(v->remedy), "%s", fi->remedy);
}

int diagnosis_run(
	const struct root *root, const struct diagnosis_opts *opts, struct diagnosis *ret, struct err *e)
{
	struct livecheck *live;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = machine_read(root, &ret->machine, e);
	if (rc)
		return rc;
	live = livecheck_begin(&ret->machine, opts->limit_ms, opts->all);
	kernelcheck_run(&ret->machine, &ret->findings);
	bugcheck_run(&ret->machine, &ret->findings);
	configcheck_run(&ret->machine, &ret->findings);
	btfcheck_run(&ret->machine, &ret->findings);
	sysctlcheck_run(&ret->machine, &ret->findings);
	priv_check_run(&ret->machine, &ret->findings);
	livecheck_open(live, &ret->findings);
	mountcheck_run(&ret->machine, &ret->findings);
	memcheck_run(&ret->machine, &ret->findings);
	symbolcheck_run(&ret->machine, &ret->findings);
	debugcheck_run(&ret->machine, &ret->findings);
	targetcheck_run(opts->pids, opts->n_pids, &ret->findings);
	livecheck_end(live, &ret->verifier_log, &ret->findings);
	if (!live || ret->findings.failed) {
		diagnosis_free(ret);
		return err_nomem(e, "the findings");
	}
	for (enum finding_tool tool = 0; tool < TOOL_COUNT; tool++)
		if (tool != TOOL_OFFCPU_RECORD)
			judge(&ret->findings, tool, &ret->verdicts[tool]);
	judge_recorder(&ret->findings, &ret->verdicts[TOOL_OFFCPU_RECORD]);
	return 0;
}

void diagnosis_free(struct diagnosis *d)
{
	findings_free(&d->findings);
	free(d->verifier_log);
	d->verifier_log = NULL;
}

const char *verdict_name(enum verdict_state state)
{
	static const char *const names[] = { "ready", "degraded", "impossible" };

	return names[state];
}

#define COLUMNS 80

/* Columns before a finding. */
#define INDENT 21

static void put(struct out *o, const char *s)
{
	char buf[TEXT_ESCAPED_MAX(1024)];

	text_escape(buf, sizeof(buf), s, strlen(s), TEXT_LINE);
	out_str(o, buf);
}

static void put_remedy(struct out *o, unsigned int indent, const char *remedy)
{
	if (!remedy[0])
		return;
	out_printf(o, "%*sfix: ", (int)indent, "");
	put(o, remedy);
	out_char(o, '\n');
}

/* Capitals, so that failures stand out without colour. */
static const char *shown_status(enum finding_status status)
{
	return status == FINDING_FAIL ? "FAIL" : finding_status_name(status);
}

static void put_finding(struct out *o, const char *group, const struct finding *fi)
{
	out_printf(o, "%-14s %-5s ", group, shown_status(fi->status));
	put(o, fi->found);
	out_char(o, '\n');
	put_remedy(o, INDENT, fi->remedy);
}

/* Passed checks in one line: the first finding, and how many more. */
static void put_fine(
	struct out *o, const char *group, const struct finding *first, size_t fine, size_t skipped)
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
	out_printf(o, "%-14s %-5s %s%s\n", group, "ok", shown, more);
}

static void put_group(struct out *o, const struct findings *f, enum finding_group group)
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
		put_fine(o, name, first, fine, skipped);
		name = "";
	} else if (skip) {
		out_printf(o, "%-14s %-5s ", name, "skip");
		put(o, skip->found);
		out_char(o, '\n');
		name = "";
	}
	for (size_t i = 0; i < f->n; i++) {
		if (f->list[i].group != group || f->list[i].status == FINDING_OK ||
			f->list[i].status == FINDING_SKIP)
			continue;
		put_finding(o, name, &f->list[i]);
		name = "";
	}
}

static bool counts(int only, enum finding_tool tool)
{
	return only < 0 || only == (int)tool;
}

static void put_verdicts(struct out *o, const struct diagnosis *d, enum diagreport_style style, int only)
{
	for (enum finding_tool tool = 0; tool < TOOL_COUNT; tool++) {
		const struct verdict *v = &d->verdicts[tool];

		if (!counts(only, tool))
			continue;
		out_printf(o, "%-17s %s%s", finding_tool_name(tool), verdict_name(v->state),
			v->why[0] ? ": " : "");
		put(o, v->why);
		if (style == DIAGREPORT_QUIET && v->remedy[0]) {
			out_str(o, "; fix: ");
			put(o, v->remedy);
		}
		out_char(o, '\n');
		if (style != DIAGREPORT_QUIET)
			put_remedy(o, 18, v->remedy);
	}
}

void diagreport_text(const struct diagnosis *d, enum diagreport_style style, int only, struct out *o)
{
	const struct findings *f = &d->findings;

	if (style == DIAGREPORT_VERBOSE) {
		for (size_t i = 0; i < f->n; i++)
			put_finding(o, finding_group_name(f->list[i].group), &f->list[i]);
	} else if (style == DIAGREPORT_TEXT) {
		for (enum finding_group group = 0; group < GROUP_COUNT; group++)
			put_group(o, f, group);
	}
	if (style != DIAGREPORT_QUIET)
		out_char(o, '\n');
	put_verdicts(o, d, style, only);
	if (style == DIAGREPORT_VERBOSE && d->verifier_log) {
		out_str(o, "\nThe verifier's log of each program that it refuses:\n\n");
		out_str(o, d->verifier_log);
	}
}

/* Escape S for a TAP line, where '#' would begin a directive. Cut to CAP; TEXT_ESCAPED_MAX is enough. */
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

void diagreport_tap(const struct diagnosis *d, int only, struct tap *t)
{
	char found[8192], remedy[8192];

	for (size_t i = 0; i < d->findings.n; i++) {
		const struct finding *fi = &d->findings.list[i];

		tap_text(fi->found, found, sizeof(found));
		tap_text(fi->remedy, remedy, sizeof(remedy));
		if (fi->status == FINDING_SKIP)
			tap_skip(t, fi->id, "%s", found);
		else
			tap_ok(t, fi->status != FINDING_FAIL, "%s: %s", fi->id, found);
		if (fi->status == FINDING_WARN)
			tap_diag("warning: %s", found);
		if (fi->status != FINDING_OK && remedy[0])
			tap_diag("fix: %s", remedy);
	}
	for (enum finding_tool tool = 0; tool < TOOL_COUNT; tool++)
		if (counts(only, tool))
			tap_diag("%s is %s", finding_tool_name(tool), verdict_name(d->verdicts[tool].state));
}

/* An empty VALUE becomes null. */
static void put_member(struct json *j, const char *name, const char *value)
{
	json_str(j, name, value[0] ? value : NULL);
}

/* One line per check. */
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

static void put_tools(struct json *j, const struct diagnosis *d, int only)
{
	json_begin(j, "tools", '[');
	for (enum finding_tool tool = 0; tool < TOOL_COUNT; tool++) {
		if (!counts(only, tool))
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

void diagreport_json(const struct diagnosis *d, int only, int status, struct out *o)
{
	struct json j = { .o = o, .spaced = true };

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
	put_tools(&j, d, only);
	json_line(&j, 2);
	json_u64(&j, "status", (uint64_t)status);
	json_line(&j, 0);
	json_end(&j, '}');
	out_char(o, '\n');
}
