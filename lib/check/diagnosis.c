/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/diagnosis.h"
#include "check/btfcheck.h"
#include "check/bugcheck.h"
#include "check/capcheck.h"
#include "check/configcheck.h"
#include "check/debugcheck.h"
#include "check/kernelcheck.h"
#include "check/livecheck.h"
#include "check/memcheck.h"
#include "check/mountcheck.h"
#include "check/symbolcheck.h"
#include "check/sysctlcheck.h"

#include <string.h>

/* The first finding that stops the tool is the cause: later ones mostly follow from it. */
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

/* The first finding that bars every mode better than MODE, or else the first that bars the next better one.
 */
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

/* A lesser mode is a degradation that comes before all others: it takes the most. */
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

int diagnosis_run(const struct root *root, unsigned int limit_ms, struct diagnosis *ret, struct err *e)
{
	struct livecheck *live;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = machine_read(root, &ret->machine, e);
	if (rc)
		return rc;
	live = livecheck_begin(&ret->machine, limit_ms);
	kernelcheck_run(&ret->machine, &ret->findings);
	bugcheck_run(&ret->machine, &ret->findings);
	configcheck_run(&ret->machine, &ret->findings);
	btfcheck_run(&ret->machine, &ret->findings);
	sysctlcheck_run(&ret->machine, &ret->findings);
	capcheck_run(&ret->machine, &ret->findings);
	livecheck_open(live, &ret->findings);
	mountcheck_run(&ret->machine, &ret->findings);
	memcheck_run(&ret->machine, &ret->findings);
	symbolcheck_run(&ret->machine, &ret->findings);
	debugcheck_run(&ret->machine, &ret->findings);
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
