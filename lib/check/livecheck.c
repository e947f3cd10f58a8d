/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "livecheck.h"
#include "callprobe.h"
#include "confinement.h"
#include "mapprobe.h"
#include "offcpu.h"
#include "probe.h"
#include "progprobe.h"
#include "unwind_abi.h"
#include "unwindspace.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#define RECORD TOOL_BIT(TOOL_OFFCPU_RECORD)
#define STACKMAP TOOL_BIT(TOOL_STACKMAP_TEST)
#define SYMBOLIZE TOOL_BIT(TOOL_SYMBOLIZE)
#define BTF MODE_BIT(MODE_BTF)
#define RAW MODE_BIT(MODE_RAW)
#define PROCFS MODE_BIT(MODE_PROCFS)

/* The recorder's own programs: loaded, verified and attached. *RET is to be closed, or ends with the process.
 */
static int try_recorder(const struct unwindspace_fds *tables, struct offcpu **ret, struct err *e)
{
	const struct offcpu_opts opts = { .follow = true, .tables = tables };
	int rc = offcpu_load(&opts, ret, e);

	return rc ? rc : offcpu_attach(*ret, e);
}

static int probe_recorder(char *found, size_t cap, struct err *e)
{
	struct offcpu *o = NULL;
	int rc = try_recorder(NULL, &o, e);

	offcpu_close(o);
	if (!rc)
		snprintf(found, cap, "the recorder's programs load and attach");
	return rc;
}

/*
 * As the recorder does it with unwind tables; without them it falls back on
 * frame pointers. Nothing is closed: progprobe_verifier() looks at it next.
 */
static int probe_tables(char *found, size_t cap, struct err *e)
{
	const struct unwindspace_opts opts = { .bytes = 2 * UNWIND_CHUNK_BYTES, .first_chunks = 1 };
	struct unwindspace_fds fds;
	struct unwindspace *s = NULL;
	struct offcpu *o = NULL;
	int rc = unwindspace_open(&opts, &s, e);

	if (!rc) {
		unwindspace_fds(s, &fds);
		rc = try_recorder(&fds, &o, e);
	}
	if (rc)
		return err_prefix(e, "user stacks by frame pointer only");
	snprintf(found, cap, "the recorder's programs walk user stacks by unwind tables");
	return 0;
}

struct live {
	const char *id;
	probe_fn fn;
	enum finding_group group;
	/* when it fails; a status of OK: no tool needs it */
	enum finding_status status;
	unsigned int degrades, forbids, bars;
};

/* Takes no privilege. */
static const struct live open_list[] = {
	{ "security.bpf_call", callprobe_bpf, GROUP_SECURITY, FINDING_FAIL, 0, STACKMAP, MODES_BPF },
	{ "security.perf_call", callprobe_perf, GROUP_SECURITY, FINDING_FAIL, TOOLS_LIVE, 0, 0 },
	{ "security.confinement", confinement_probe, GROUP_SECURITY, FINDING_FAIL, RECORD | SYMBOLIZE, 0, 0 },
	{ "mounts.task_files", callprobe_task_files, GROUP_MOUNTS, FINDING_FAIL, 0, 0, PROCFS },
};

#define N_OPEN ARRAY_LEN(open_list)

/* Indices of bpf_list that are asked for. */
enum { STACK_MAP = 0, TAKE_STACK, RECORDER, TABLES, VERIFIER, EVENTS, N_CORE };

/* Takes CAP_BPF and CAP_PERFMON. First what the verdicts stand on, then what explains a failure. */
static const struct live bpf_list[] = {
	[STACK_MAP] = { "live.stack_map", probe_stack_map, GROUP_LIVE, FINDING_FAIL, 0, STACKMAP, 0 },
	[TAKE_STACK] = { "live.take_stack", probe_take_stack, GROUP_LIVE, FINDING_FAIL, TOOLS_LIVE, 0, RAW },
	[RECORDER] = { "live.recorder", probe_recorder, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	[TABLES] = { "live.unwind_tables", probe_tables, GROUP_LIVE, FINDING_FAIL, RECORD, 0, 0 },
	[VERIFIER] = { "live.verifier", progprobe_verifier, GROUP_LIVE, FINDING_WARN, 0, 0, 0 },
	[EVENTS] = { "live.process_events", probe_process_events, GROUP_LIVE, FINDING_FAIL, RECORD, 0, 0 },
	{ "live.maps", mapprobe_plain, GROUP_LIVE, FINDING_FAIL, 0, 0, MODES_BPF },
	{ "live.ring_buffer", mapprobe_ring, GROUP_LIVE, FINDING_FAIL, 0, 0, MODES_BPF },
	{ "live.task_storage", mapprobe_task_storage, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	{ "live.map_in_map", mapprobe_map_in_map, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	{ "live.mmapable_array", mapprobe_mmapable, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	{ "live.tail_call", progprobe_tail_call, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	{ "live.iterator", progprobe_iterator, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	{ "live.sleepable_iterator", progprobe_sleepable_iterator, GROUP_LIVE, FINDING_FAIL, RECORD, 0, 0 },
	{ "live.sleepable", progprobe_sleepable, GROUP_LIVE, FINDING_OK, 0, 0, 0 },
	{ "live.helpers", progprobe_helper_calls, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	{ "live.raw_helpers", progprobe_raw_calls, GROUP_LIVE, FINDING_FAIL, 0, 0, RAW },
	{ "live.raw_run", progprobe_raw_run, GROUP_LIVE, FINDING_FAIL, 0, 0, RAW },
	{ "live.kfuncs", progprobe_kfuncs, GROUP_LIVE, FINDING_OK, 0, 0, 0 },
	/* the last: it lowers a limit */
	{ "live.memlock", mapprobe_memlock, GROUP_LIVE, FINDING_OK, 0, 0, 0 },
};

#define N_BPF ARRAY_LEN(bpf_list)

struct trial {
	struct probe_run *run; /* NULL: not begun */
	char why_not[256];
};

struct livecheck {
	struct trial open, bpf;
};

static void begin(struct trial *t, const struct live *list, size_t n, unsigned int limit_ms)
{
	probe_fn fns[N_OPEN + N_BPF];
	struct err e = { 0 };

	for (size_t i = 0; i < n; i++)
		fns[i] = list[i].fn;
	if (!t->why_not[0] && probe_start(fns, n, limit_ms, &t->run, &e) != 0)
		snprintf(t->why_not, sizeof(t->why_not), "%.250s", e.msg);
}

/* Without the capabilities each would only repeat that they are missing. */
static void why_no_bpf(const struct machine *m, char *buf, size_t cap)
{
	static const int caps[] = { CAP_BPF, CAP_PERFMON };
	char line[128];

	if (m->user_ns)
		snprintf(buf, cap, "not run: a user namespace forbids BPF");
	else if (caps_missing(caps, ARRAY_LEN(caps), line, sizeof(line)))
		snprintf(buf, cap, "not run: of bpfcheck itself, %s; as root it tries", line);
	/* each refusal would be logged by the kernel */
	else if (root_line(m->root, "sys/kernel/security/lockdown", line, sizeof(line), NULL) == 0 &&
		 strstr(line, "[confidentiality]"))
		snprintf(buf, cap, "not run: lockdown forbids it, and the kernel would log each attempt");
}

struct livecheck *livecheck_begin(const struct machine *m, unsigned int limit_ms)
{
	struct livecheck *lc = calloc(1, sizeof(*lc));

	if (!lc)
		return NULL;
	if (!m->root->live) {
		snprintf(lc->open.why_not, sizeof(lc->open.why_not), "not run: --root is not this machine");
		lc->bpf = lc->open;
		return lc;
	}
	why_no_bpf(m, lc->bpf.why_not, sizeof(lc->bpf.why_not));
	begin(&lc->open, open_list, N_OPEN, limit_ms);
	begin(&lc->bpf, bpf_list, N_BPF, limit_ms);
	return lc;
}

/* Some failures mean less than their probe's: nothing to count with, or a stack that came back empty. */
static void soften(const struct live *l, const struct probe_result *r, struct finding *fi)
{
	if (l->fn == progprobe_verifier && r->code == -ENODATA) {
		fi->status = FINDING_SKIP;
	} else if (l->fn == confinement_probe && r->code == -EOPNOTSUPP) {
		fi->status = FINDING_WARN;
		fi->degrades = 0;
	} else if (l->fn == probe_take_stack && r->code == -ENODATA) {
		fi->bars = 0;
	}
}

static void add_result(const struct live *l, const struct probe_result *r, struct findings *f)
{
	struct finding *fi;

	if (!r->code) {
		findings_add(f, l->group, FINDING_OK, l->id, "%s", r->found);
		return;
	}
	fi = findings_add(f, l->group, l->status, l->id, "%.400s%s", r->err.msg,
		l->status == FINDING_OK ? ": no tool needs it" : "");
	fi->degrades = l->degrades;
	fi->forbids = l->forbids;
	fi->bars = l->bars;
	finding_mend(fi, "%s", r->err.hint);
	soften(l, r, fi);
}

static void add_skips(const struct live *list, size_t n, const char *why, struct findings *f)
{
	for (size_t i = 0; i < n; i++)
		findings_add(f, list[i].group, FINDING_SKIP, list[i].id, "%s", why);
}

void livecheck_open(struct livecheck *lc, struct findings *f)
{
	struct probe_result results[N_OPEN];

	if (!lc)
		return;
	if (!lc->open.run) {
		add_skips(open_list, N_OPEN, lc->open.why_not, f);
		return;
	}
	probe_finish(lc->open.run, results);
	lc->open.run = NULL;
	for (size_t i = 0; i < N_OPEN; i++)
		add_result(&open_list[i], &results[i], f);
}

/* TOOLS and MODES are there after all: findings that say otherwise are warnings. */
static void believe(struct findings *f, unsigned int tools, unsigned int modes)
{
	for (size_t i = 0; i < f->n; i++) {
		struct finding *fi = &f->list[i];
		size_t len = strlen(fi->found);

		if (!((fi->forbids & tools) | (fi->bars & modes)))
			continue;
		fi->forbids &= ~tools;
		fi->bars &= ~modes;
		if (!fi->forbids && !fi->bars) {
			fi->degrades &= ~tools;
			if (fi->status == FINDING_FAIL)
				fi->status = FINDING_WARN;
		}
		snprintf(fi->found + len, sizeof(fi->found) - len, " (yet the live probes succeed)");
	}
}

void livecheck_end(struct livecheck *lc, struct findings *f)
{
	struct probe_result results[N_BPF];
	bool fine = true;

	if (!lc)
		return;
	if (!lc->bpf.run) {
		add_skips(bpf_list, N_BPF, lc->bpf.why_not, f);
		free(lc);
		return;
	}
	probe_finish(lc->bpf.run, results);
	for (size_t i = 0; i < N_CORE; i++)
		fine &= results[i].code == 0 || i == VERIFIER;
	if (results[TAKE_STACK].code == 0)
		believe(f, 0, RAW);
	if (fine)
		believe(f, TOOLS_LIVE, MODES_BPF);
	for (size_t i = 0; i < N_BPF; i++)
		add_result(&bpf_list[i], &results[i], f);
	free(lc);
}
