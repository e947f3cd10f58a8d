/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/live.h"
#include "check/probes.h"
#include "record/bpf.h"
#include "record/runtimes.h"
#include "record/unwind_memory.h"
#include "system/events.h"
#include "system/owner.h"
#include "system/privileges.h"
#include "system/worker.h"
#include "unwind_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define MEMORY (UINT64_C(1) << 20)

/*
 * The child opens its own /proc/self/status before it enters the sandbox, where it cannot open files. With
 * hidepid the parent might not be able to open it either.
 */
static int open_status(void *arg, struct err *e)
{
	int *fd = arg;

	*fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? err_sys(e, -errno, "cannot read /proc/PID/status of a process in the sandbox") : 0;
}

/* A worker_fn that replies with the descriptor. */
static int hand_status(void *ctx, const void *request, size_t len, int *fds, struct worker_answer *a)
{
	(void)ctx, (void)request, (void)len, (void)fds;
	a->fd = SANDBOX_FD + 1;
	return 0;
}

static int be_confined(void *arg, int sock)
{
	(void)arg;
	worker_serve(sock, NULL, 0, hand_status, NULL);
	return 0;
}

static int read_status(int fd, struct confinement *ret, struct err *e)
{
	char text[8192];
	struct priv_status s;
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return err_sys(e, fd < 0 ? -ENOENT : -EIO,
			"cannot read /proc/PID/status of a process in the sandbox");
	text[n] = '\0';
	if (priv_status_parse(text, &s) != 0)
		return err_set(e, -EINVAL, "/proc/PID/status is not understood");
	ret->no_caps = !s.effective && !s.permitted && s.no_new_privs == 1;
	ret->other_user = geteuid() == 0 && s.uid != 0;
	ret->seccomp = s.seccomp == 2;
	return 0;
}

static int try_sandbox(struct confinement *ret, struct err *e)
{
	int status = -1;
	const struct sandbox_opts box = {
		.more_fds = &status, .n_more = 1, .comm = "bpfcheck-box", .memory_bytes = MEMORY
	};
	const struct worker_opts opts = { .who = "a process in the sandbox",
		.sandbox = &box,
		.prepare = open_status,
		.run = be_confined,
		.arg = &status };
	struct worker *w = NULL;
	ssize_t n;
	int fd = -1, rc = worker_start(&opts, &w, e);

	rc = rc ? rc : worker_ready(w, e);
	n = rc ? rc : worker_call(w, NULL, 0, NULL, 0, &fd, e);
	rc = n < 0 ? (int)n : read_status(fd, ret, e);
	if (fd >= 0)
		close(fd);
	worker_free(w);
	return rc;
}

static int paths_are_denied(void *arg)
{
	(void)arg;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && pathlock_all(NULL) &&
	       open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0 && errno == EACCES;
}

int confinement_try(struct confinement *ret, struct err *e)
{
	*ret = (struct confinement){ .landlock = worker_try(paths_are_denied, NULL) == 1 };
	return try_sandbox(ret, e);
}

int confinement_probe(char *found, size_t cap, struct err *e)
{
	struct confinement c;
	char layers[200];
	int rc = confinement_try(&c, e);

	if (rc)
		return err_prefix(e, "files of traced processes cannot be parsed in a sandbox"), rc;
	snprintf(layers, sizeof(layers), "%s%s%s%s", c.no_caps ? "no capability" : "capabilities left",
		c.other_user ? ", another user" : "", c.seccomp ? ", few system calls (seccomp)" : "",
		c.landlock ? ", no path (Landlock)" : "");
	if (!c.seccomp && !c.landlock) {
		err_set(e, -EOPNOTSUPP,
			"parsers of traced processes' files can open any file of theirs: neither seccomp nor "
			"Landlock; in force: %s",
			layers);
		err_hint(e, "boot a kernel built with CONFIG_SECCOMP_FILTER=y, or with landlock in lsm=");
		return -EOPNOTSUPP;
	}
	snprintf(found, cap, "parsers of traced processes' files have %s%s%s", layers,
		c.seccomp ? "" : "; no seccomp", c.landlock ? "" : "; no Landlock");
	return 0;
}

#define RECORD TOOL_BIT(TOOL_OFFCPU_RECORD)
#define STACKMAP TOOL_BIT(TOOL_STACKMAP_TEST)
#define SYMBOLIZE TOOL_BIT(TOOL_SYMBOLIZE)
#define BTF MODE_BIT(MODE_BTF)
#define RAW MODE_BIT(MODE_RAW)
#define PROCFS MODE_BIT(MODE_PROCFS)

/* Results that the trials in the child leave for the parent, in memory files. */
struct traces {
	int programs; /* an array of struct progprobe_program */
	int log; /* the verifier's log of each program that it refused */
	bool all; /* list the programs that look for script frames too */
	/* valid only in the child: */
	bool walks; /* mode btf works with unwind tables */
	char scripts[400]; /* with `all`: what cannot be had of script frames, and why; "" = nothing */
};

/* List the programs of O and close it; then list those that further options of the recorder add. */
static void list_programs(struct traces *t, struct offcpu_opts *opts, struct offcpu *o)
{
	const char *mode = opts->raw ? "raw" : "btf";
	struct err why = { 0 };

	progprobe_programs(mode, t->programs, NULL);
	offcpu_close(o);
	opts->use_comms = opts->use_exec = opts->use_tids = opts->no_events = true;
	opts->use_cgroup = !opts->raw;
	opts->scripts = t->all && !opts->raw ? ~0U : 0;
	if (offcpu_load(opts, &o, &why) != 0) {
		if (opts->scripts)
			snprintf(t->scripts, sizeof(t->scripts), "none: %.300s", why.msg);
		return;
	}
	if (opts->scripts)
		snprintf(t->scripts, sizeof(t->scripts), "%.350s",
			offcpu_scripts_partial(o)
				? "not in waits that began before the recording: the verifier refuses that "
				  "program with all of them"
				: offcpu_limits(o));
	progprobe_programs(mode, t->programs, NULL);
	offcpu_close(o);
}

/*
 * Load and attach the recorder's own programs, as the recorder does. It falls back to frame pointers if it
 * cannot use unwind tables; here TABLES selects one of the two. LIMITS: what such a recording cannot do
 * (offcpu_limits()), "" = nothing.
 */
static int try_recorder(struct traces *t, bool raw, bool tables, char *limits, size_t cap, struct err *e)
{
	const struct unwindspace_opts space = {
		.bytes = 2 * UNWIND_CHUNK_BYTES, .first_chunks = 1, .procs_at_once = raw
	};
	struct offcpu_opts opts = { .follow = true, .raw = raw, .verifier_log = t->log };
	struct unwindspace_fds fds;
	struct unwindspace *s = NULL;
	struct procevents *events = NULL;
	struct offcpu *o = NULL;
	int rc = tables ? unwindspace_open(&space, &s, e) : 0;

	if (rc)
		return rc;
	if (tables) {
		unwindspace_fds(s, &fds);
		opts.tables = &fds;
	}
	opts.no_events = procevents_open(&(struct procevents_opts){ 0 }, &events, NULL) != 0;
	rc = offcpu_load(&opts, &o, e);
	if (!rc)
		rc = offcpu_attach(o, e);
	if (!rc)
		snprintf(limits, cap, "%s", offcpu_limits(o));
	if (!rc)
		list_programs(t, &opts, o);
	else
		offcpu_close(o);
	procevents_close(events);
	unwindspace_close(s);
	return rc;
}

static int try_tables(struct traces *t, char *found, size_t cap, struct err *e)
{
	int rc = try_recorder(t, false, true, found, cap, e);

	if (rc)
		return err_prefix(e, "user stacks by frame pointer only"), rc;
	t->walks = true;
	if (found[0])
		return err_set(e, -EOPNOTSUPP, "mode btf without a part: %s", found);
	snprintf(found, cap, "the recorder's programs walk user stacks by unwind tables");
	return 0;
}

/* Which runtimes' functions cannot be found in all waits, because the kernel refuses a program for them
 * alone? */
static int try_each_runtime(struct offcpu_opts *opts, uint32_t *ret, struct err *e)
{
	struct offcpu *o = NULL;

	*ret = 0;
	for (uint32_t k = 1; k < RUNTIME_KINDS; k++) {
		int rc;

		opts->scripts = 1U << k;
		rc = offcpu_load(opts, &o, e);
		if (rc)
			return rc;
		if (offcpu_scripts_partial(o) || offcpu_limits(o)[0])
			*ret |= 1U << k;
		offcpu_close(o);
	}
	return 0;
}

/* The recorder loads what its targets need: the programs for each runtime are tried alone, and for all. */
static int try_scripts(struct traces *t, char *found, size_t cap, struct err *e)
{
	const struct unwindspace_opts space = { .bytes = 2 * UNWIND_CHUNK_BYTES, .first_chunks = 1 };
	struct offcpu_opts opts = { .follow = true, .verifier_log = t->log };
	struct unwindspace_fds fds;
	struct unwindspace *s = NULL;
	char names[128];
	uint32_t refused;
	int rc;

	snprintf(found, cap, "functions of interpreters' programs: %s",
		t->walks ? "tried with -v" : "only with unwind tables");
	if (!t->walks || !t->all)
		return 0;
	rc = unwindspace_open(&space, &s, e);
	if (rc)
		return rc;
	unwindspace_fds(s, &fds);
	opts.tables = &fds;
	rc = try_each_runtime(&opts, &refused, e);
	unwindspace_close(s);
	if (rc)
		return rc;
	if (refused || t->scripts[0])
		return err_set(e, -EOPNOTSUPP, "functions of interpreters' programs: not in every wait: %s%s",
			refused ? "the verifier refuses a program for " : t->scripts,
			refused ? runtimes_list(refused, names, sizeof(names)) : "");
	snprintf(found, cap, "functions of interpreters' programs: of each runtime, and of all at once");
	return 0;
}

/* Programs that load with unwind tables also load without. */
static int try_btf(struct traces *t, char *found, size_t cap, struct err *e)
{
	int rc = t->walks ? 0 : try_recorder(t, false, false, found, cap, e);

	snprintf(found, cap, "the recorder's programs load and attach");
	return rc;
}

static int try_raw(struct traces *t, char *found, size_t cap, struct err *e)
{
	struct err without;

	if (try_recorder(t, true, true, found, cap, e) == 0) {
		snprintf(found, cap, "the recorder's programs for mode raw load and attach");
		return 0;
	}
	if (try_recorder(t, true, false, found, cap, &without) != 0) {
		*e = without;
		return e->code;
	}
	snprintf(found, cap,
		"the recorder's programs for mode raw load and attach, with user stacks by frame pointer "
		"only: %.100s",
		e->msg);
	return 0;
}

struct live {
	const char *id;
	/* exactly one of the two is set */
	probe_fn fn;
	int (*trial)(struct traces *t, char *found, size_t cap, struct err *e);
	enum finding_group group;
	/* if it fails; status FINDING_OK: no tool needs it */
	enum finding_status status;
	unsigned int degrades, forbids, bars;
};

/* Probes that need no privilege. */
static const struct live open_list[] = {
	{ "security.bpf_call", callprobe_bpf, NULL, GROUP_SECURITY, FINDING_FAIL, 0, STACKMAP, MODES_BPF },
	{ "security.perf_call", callprobe_perf, NULL, GROUP_SECURITY, FINDING_FAIL, TOOLS_LIVE, 0, 0 },
	{ "security.confinement", confinement_probe, NULL, GROUP_SECURITY, FINDING_FAIL, RECORD | SYMBOLIZE,
		0, 0 },
	{ "mounts.task_files", callprobe_task_files, NULL, GROUP_MOUNTS, FINDING_FAIL, 0, 0, PROCFS },
};

#define N_OPEN ARRAY_LEN(open_list)

/* Indices into bpf_list that the code refers to. */
enum { STACK_MAP = 0, TAKE_STACK, TABLES, RECORDER, RAW_RECORDER };

/*
 * Probes that need CAP_BPF and CAP_PERFMON. The first ones decide the verdicts; the others explain a failure,
 * and bar a mode only if the mode's own trial failed.
 */
static const struct live bpf_list[] = {
	[STACK_MAP] = { "live.stack_map", probe_stack_map, NULL, GROUP_LIVE, FINDING_FAIL, 0, STACKMAP, 0 },
	[TAKE_STACK] = { "live.take_stack", probe_take_stack, NULL, GROUP_LIVE, FINDING_FAIL, STACKMAP, 0,
		0 },
	[TABLES] = { "live.unwind_tables", NULL, try_tables, GROUP_LIVE, FINDING_FAIL, RECORD, 0, 0 },
	[RECORDER] = { "live.recorder", NULL, try_btf, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	[RAW_RECORDER] = { "live.raw_recorder", NULL, try_raw, GROUP_LIVE, FINDING_FAIL, 0, 0, RAW },
	{ "live.script_frames", NULL, try_scripts, GROUP_LIVE, FINDING_WARN, 0, 0, 0 },
	{ "live.process_events", probe_process_events, NULL, GROUP_LIVE, FINDING_FAIL, RECORD, 0, 0 },
	{ "live.maps", mapprobe_plain, NULL, GROUP_LIVE, FINDING_FAIL, 0, 0, MODES_BPF },
	{ "live.ring_buffer", mapprobe_ring, NULL, GROUP_LIVE, FINDING_FAIL, 0, 0, MODES_BPF },
	{ "live.task_storage", mapprobe_task_storage, NULL, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	{ "live.map_in_map", mapprobe_map_in_map, NULL, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	{ "live.mmapable_array", mapprobe_mmapable, NULL, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	{ "live.tail_call", progprobe_tail_call, NULL, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	{ "live.iterator", progprobe_iterator, NULL, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	{ "live.sleepable_iterator", progprobe_sleepable_iterator, NULL, GROUP_LIVE, FINDING_FAIL, RECORD, 0,
		0 },
	{ "live.sleepable", progprobe_sleepable, NULL, GROUP_LIVE, FINDING_OK, 0, 0, 0 },
	{ "live.helpers", progprobe_helper_calls, NULL, GROUP_LIVE, FINDING_FAIL, 0, 0, BTF },
	{ "live.raw_helpers", progprobe_raw_calls, NULL, GROUP_LIVE, FINDING_FAIL, 0, 0, RAW },
	{ "live.raw_run", progprobe_raw_run, NULL, GROUP_LIVE, FINDING_FAIL, 0, 0, RAW },
	{ "live.kfuncs", progprobe_kfuncs, NULL, GROUP_LIVE, FINDING_OK, 0, 0, 0 },
	/* must be last: it lowers a limit */
	{ "live.memlock", mapprobe_memlock, NULL, GROUP_LIVE, FINDING_OK, 0, 0, 0 },
};

#define N_BPF ARRAY_LEN(bpf_list)

/* The work of one child. */
struct trial {
	const struct live *list;
	size_t n;
	struct traces traces;
	struct probe_run *run; /* NULL = not started */
	char why_not[256];
};

struct livecheck {
	struct trial open, bpf;
};

static int attempt(void *ctx, size_t i, char *found, size_t cap, struct err *e)
{
	struct trial *t = ctx;

	/* an earlier attempt may have lowered the file's capabilities, as the recorder does */
	owner_raise();
	return t->list[i].fn ? t->list[i].fn(found, cap, e) : t->list[i].trial(&t->traces, found, cap, e);
}

static int trace_file(void)
{
	int fd = memfd_create("bpfcheck", MFD_CLOEXEC);

	/* O_APPEND: each child writes after the previous one */
	return fd < 0 || fcntl(fd, F_SETFL, O_APPEND) == 0 ? fd : -1;
}

static void begin(struct trial *t, unsigned int limit_ms, bool all)
{
	const struct probe_job job = {
		.n = t->n, .attempt = attempt, .ctx = t, .go_on = true, .limit_ms = limit_ms
	};
	struct err e = { 0 };

	if (t->why_not[0])
		return;
	t->traces = (struct traces){ .programs = trace_file(), .log = trace_file(), .all = all };
	if (probe_start_job(&job, &t->run, &e) != 0)
		snprintf(t->why_not, sizeof(t->why_not), "%.250s", e.msg);
}

/* Without the capabilities, each probe would only report that they are missing. */
static void why_no_bpf(const struct machine *m, char *buf, size_t cap)
{
	static const int caps[] = { CAP_BPF, CAP_PERFMON };
	char line[128];

	if (m->user_ns)
		snprintf(buf, cap, "not run: a user namespace forbids BPF");
	else if (priv_missing(caps, ARRAY_LEN(caps), line, sizeof(line)))
		snprintf(buf, cap, "not run: of bpfcheck itself, %s; as root it tries", line);
	/* the kernel would log each refusal */
	else if (root_line(m->root, "sys/kernel/security/lockdown", line, sizeof(line), NULL) == 0 &&
		 strstr(line, "[confidentiality]"))
		snprintf(buf, cap, "not run: lockdown forbids it, and the kernel would log each attempt");
}

struct livecheck *livecheck_begin(const struct machine *m, unsigned int limit_ms, bool all)
{
	struct livecheck *lc = calloc(1, sizeof(*lc));

	if (!lc)
		return NULL;
	lc->open = (struct trial){ .list = open_list, .n = N_OPEN, .traces = { .programs = -1, .log = -1 } };
	lc->bpf = (struct trial){ .list = bpf_list, .n = N_BPF, .traces = { .programs = -1, .log = -1 } };
	if (!m->root->live) {
		snprintf(lc->open.why_not, sizeof(lc->open.why_not), "not run: --root is not this machine");
		memcpy(lc->bpf.why_not, lc->open.why_not, sizeof(lc->bpf.why_not));
		return lc;
	}
	why_no_bpf(m, lc->bpf.why_not, sizeof(lc->bpf.why_not));
	limit_ms = probe_limit_ms(limit_ms);
	begin(&lc->open, limit_ms, all);
	begin(&lc->bpf, limit_ms, all);
	return lc;
}

/* PROVED: modes of the recorder that work, so they do not need what failed here. */
static void add_result(
	const struct live *l, const struct probe_result *r, unsigned int proved, struct findings *f)
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
	fi->bars = l->bars & ~proved;
	finding_remedy(fi, "%s", r->err.hint);
	if (l->bars && !fi->bars)
		fi->status = FINDING_WARN;
	if (r->code == -EOPNOTSUPP && (l->fn == confinement_probe || l->trial)) {
		fi->status = FINDING_WARN;
		fi->degrades = l->trial ? l->degrades : 0;
	}
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
		add_result(&open_list[i], &results[i], 0, f);
}

/*
 * TOOLS and MODES have been proved to work: findings that forbid or bar them become warnings. Findings about
 * capabilities stay: a trial in this process does not show a tool's own privileges.
 */
static void believe(struct findings *f, unsigned int tools, unsigned int modes)
{
	for (size_t i = 0; i < f->n; i++) {
		struct finding *fi = &f->list[i];
		size_t len = strlen(fi->found);

		if (fi->group == GROUP_CAPS || !((fi->forbids & tools) | (fi->bars & modes)))
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

/*
 * The number of instructions that the verifier processed for each of the recorder's programs, with the
 * options that cost the most.
 */
static void add_programs(int fd, struct findings *f)
{
	struct progprobe_program list[64], p, largest = { .insns = 0 };
	size_t n = 0, interpreted = 0;
	struct finding *fi;

	for (off_t at = 0; pread(fd, &p, sizeof(p), at) == (ssize_t)sizeof(p); at += (off_t)sizeof(p)) {
		size_t i = 0;

		while (i < n && (strcmp(list[i].mode, p.mode) != 0 || strcmp(list[i].name, p.name) != 0))
			i++;
		if (i < ARRAY_LEN(list) && (i == n || p.insns > list[i].insns))
			list[i] = p;
		n = MAX(n, MIN(i + 1, ARRAY_LEN(list)));
	}
	for (size_t i = 0; i < n; i++) {
		interpreted += !list[i].compiled;
		if (list[i].insns >= largest.insns)
			largest = list[i];
	}
	if (!largest.insns) {
		findings_add(f, GROUP_LIVE, FINDING_SKIP, "live.verifier", "%s",
			n ? "the kernel does not count what its verifier processes (Linux 5.16)"
			  : "no program of the recorder is loaded");
		return;
	}
	fi = findings_add(f, GROUP_LIVE, largest.insns > PROGPROBE_LIMIT / 10 * 9 ? FINDING_WARN : FINDING_OK,
		"live.verifier",
		"%zu programs of the recorder: the verifier processes at most %u instructions (%s, mode %s), "
		"%u %% of its limit; %s",
		n, largest.insns, largest.name, largest.mode, largest.insns / (PROGPROBE_LIMIT / 100),
		interpreted ? "some are interpreted" : "all compiled");
	for (size_t i = 0; i < n; i++) {
		char id[sizeof(fi->id)];

		snprintf(id, sizeof(id), "live.program.%.7s.%.15s", list[i].mode, list[i].name);
		findings_add(f, GROUP_LIVE, FINDING_OK, id,
			"mode %s, program %s: %u of %u instructions for the verifier", list[i].mode,
			list[i].name, list[i].insns, PROGPROBE_LIMIT);
	}
}

/* The content of FD, NUL-terminated; NULL if it is empty. Release with free(). */
static char *read_log(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = size > 0 ? malloc((size_t)size + 1) : NULL;
	ssize_t n = text ? pread(fd, text, (size_t)size, 0) : -1;

	if (text)
		text[MAX(n, 0)] = '\0';
	return text;
}

static void close_traces(struct trial *t)
{
	if (t->traces.programs >= 0)
		close(t->traces.programs);
	if (t->traces.log >= 0)
		close(t->traces.log);
}

static void finish_bpf(struct trial *t, char **log, struct findings *f)
{
	struct probe_result results[N_BPF];
	unsigned int proved;

	probe_finish(t->run, results);
	proved = (results[RECORDER].code ? 0 : BTF) | (results[RAW_RECORDER].code ? 0 : RAW);
	believe(f, 0, proved);
	if (results[STACK_MAP].code == 0 && results[TAKE_STACK].code == 0)
		believe(f, STACKMAP, 0);
	for (size_t i = 0; i < N_BPF; i++)
		add_result(&bpf_list[i], &results[i], proved, f);
	add_programs(t->traces.programs, f);
	*log = read_log(t->traces.log);
}

void livecheck_end(struct livecheck *lc, char **log, struct findings *f)
{
	*log = NULL;
	if (!lc)
		return;
	if (lc->bpf.run)
		finish_bpf(&lc->bpf, log, f);
	else
		add_skips(bpf_list, N_BPF, lc->bpf.why_not, f);
	close_traces(&lc->open);
	close_traces(&lc->bpf);
	free(lc);
}
