/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnosis.h"
#include "btfcheck.h"
#include "capcheck.h"
#include "kernelcheck.h"
#include "mountcheck.h"
#include "offcpu.h"
#include "unwindspace.h"
#include "probe.h"
#include "symbolcheck.h"
#include "sysctlcheck.h"
#include "unwind_abi.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#define RECORD TOOL_BIT(TOOL_OFFCPU_RECORD)
#define STACKMAP TOOL_BIT(TOOL_STACKMAP_TEST)

/* The recorder's own programs: loaded, verified and attached, then taken away again. */
static int try_recorder(const struct unwindspace_fds *tables, struct err *e)
{
	const struct offcpu_opts opts = { .follow = true, .tables = tables };
	struct offcpu *o = NULL;
	int rc = offcpu_load(&opts, &o, e);

	if (!rc)
		rc = offcpu_attach(o, e);
	offcpu_close(o);
	return rc;
}

static int probe_recorder(char *found, size_t cap, struct err *e)
{
	int rc = try_recorder(NULL, e);

	if (!rc)
		snprintf(found, cap, "the recorder's programs load and attach");
	return rc;
}

/* As the recorder does it with unwind tables; without them it falls back on frame pointers. */
static int probe_tables(char *found, size_t cap, struct err *e)
{
	const struct unwindspace_opts opts = { .bytes = 2 * UNWIND_CHUNK_BYTES, .first_chunks = 1 };
	struct unwindspace_fds fds;
	struct unwindspace *s = NULL;
	int rc = unwindspace_open(&opts, &s, e);

	if (!rc) {
		unwindspace_fds(s, &fds);
		rc = try_recorder(&fds, e);
	}
	unwindspace_close(s);
	if (rc)
		return err_prefix(e, "user stacks by frame pointer only");
	snprintf(found, cap, "the recorder's programs walk user stacks by unwind tables");
	return 0;
}

static const struct live {
	const char *id;
	probe_fn fn;
	unsigned int degrades, forbids; /* when it fails */
} live[] = {
	{ "live.stack_map", probe_stack_map, 0, STACKMAP },
	{ "live.take_stack", probe_take_stack, RECORD | STACKMAP, 0 },
	{ "live.recorder", probe_recorder, 0, RECORD },
	{ "live.unwind_tables", probe_tables, RECORD, 0 },
	{ "live.process_events", probe_process_events, RECORD, 0 },
};

#define N_LIVE ARRAY_LEN(live)

/*
 * Why the live probes are not run, in BUF; false when they are. Without the
 * capabilities each would only repeat that they are missing.
 */
static bool why_not_live(const struct machine *m, char *buf, size_t cap)
{
	static const int caps[] = { CAP_BPF, CAP_PERFMON };
	char line[128];

	buf[0] = '\0';
	if (!m->root->live)
		snprintf(buf, cap, "not run: --root is not this machine");
	else if (m->user_ns)
		snprintf(buf, cap, "not run: a user namespace forbids BPF");
	else if (caps_missing(caps, ARRAY_LEN(caps), line, sizeof(line)))
		snprintf(buf, cap, "not run: of bpfcheck itself, %s; as root it tries", line);
	/* each refusal would be logged by the kernel */
	else if (root_line(m->root, "sys/kernel/security/lockdown", line, sizeof(line), NULL) == 0 &&
		 strstr(line, "[confidentiality]"))
		snprintf(buf, cap, "not run: lockdown forbids it, and the kernel would log each attempt");
	return buf[0] != '\0';
}

static void start_live(const struct machine *m, unsigned int limit_ms, struct probe_run **run, struct err *e)
{
	probe_fn fns[N_LIVE];
	char why[256];

	for (size_t i = 0; i < N_LIVE; i++)
		fns[i] = live[i].fn;
	*run = NULL;
	if (!why_not_live(m, why, sizeof(why)))
		probe_start(fns, N_LIVE, limit_ms, run, e);
}

static void add_result(const struct live *l, const struct probe_result *r, struct findings *f)
{
	struct finding *fi;

	if (!r->code) {
		findings_add(f, GROUP_LIVE, FINDING_OK, l->id, "%s", r->found);
		return;
	}
	fi = findings_add(f, GROUP_LIVE, FINDING_FAIL, l->id, "%.400s", r->err.msg);
	fi->degrades = l->degrades;
	fi->forbids = l->forbids;
	finding_mend(fi, "%s", r->err.hint);
}

/* What was read says it cannot be, what was tried says it is: the latter is true. */
static void believe_live(struct findings *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct finding *fi = &f->list[i];
		size_t len = strlen(fi->found);

		if (fi->status != FINDING_FAIL || !(fi->forbids & TOOLS_LIVE))
			continue;
		fi->status = FINDING_WARN;
		fi->forbids &= ~TOOLS_LIVE;
		fi->degrades &= ~TOOLS_LIVE;
		snprintf(fi->found + len, sizeof(fi->found) - len, " (yet the live probes succeed)");
	}
}

static void finish_live(
	const struct machine *m, struct probe_run *run, const struct err *start_err, struct findings *f)
{
	struct probe_result results[N_LIVE];
	size_t good = 0;
	char why[256];

	if (!run) {
		bool chosen = why_not_live(m, why, sizeof(why));

		for (size_t i = 0; i < N_LIVE; i++)
			findings_add(f, GROUP_LIVE, FINDING_SKIP, live[i].id, "%.400s",
				chosen ? why : start_err->msg);
		return;
	}
	probe_finish(run, results);
	for (size_t i = 0; i < N_LIVE; i++)
		good += results[i].code == 0;
	if (good == N_LIVE)
		believe_live(f);
	for (size_t i = 0; i < N_LIVE; i++)
		add_result(&live[i], &results[i], f);
}

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

int diagnosis_run(const struct root *root, unsigned int limit_ms, struct diagnosis *ret, struct err *e)
{
	struct err start_err = { 0 };
	struct probe_run *run;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = machine_read(root, &ret->machine, e);
	if (rc)
		return rc;
	start_live(&ret->machine, limit_ms, &run, &start_err);
	kernelcheck_run(&ret->machine, &ret->findings);
	btfcheck_run(&ret->machine, &ret->findings);
	sysctlcheck_run(&ret->machine, &ret->findings);
	capcheck_run(&ret->machine, &ret->findings);
	mountcheck_run(&ret->machine, &ret->findings);
	symbolcheck_run(&ret->machine, &ret->findings);
	finish_live(&ret->machine, run, &start_err, &ret->findings);
	if (ret->findings.failed) {
		diagnosis_free(ret);
		return err_nomem(e, "the findings");
	}
	for (enum finding_tool tool = 0; tool < TOOL_COUNT; tool++)
		judge(&ret->findings, tool, &ret->verdicts[tool]);
	return 0;
}

void diagnosis_free(struct diagnosis *d)
{
	findings_free(&d->findings);
}

const char *verdict_name(enum verdict_state state)
{
	static const char *const names[] = { "ready", "degraded", "impossible" };

	return names[state];
}
