/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * offcpu-record - record who waited, where and how long.
 */
#include "base/cli.h"
#include "base/clock.h"
#include "base/text.h"
#include "offcpu_abi.h"
#include "procfs/session.h"
#include "record/counters.h"
#include "record/options.h"
#include "record/runtimes.h"
#include "record/session.h"
#include "system/command.h"
#include "system/container.h"
#include "system/owner.h"
#include "system/privileges.h"
#include "system/targets.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

/*
 * recargs - the command line of offcpu-record.
 */

#define RECARGS_LIST_MAX 256

enum recargs_unwind { UNWIND_AUTO, UNWIND_DWARF, UNWIND_FP, UNWIND_NONE };
static const char *const unwinds[] = { "auto", "dwarf", "fp", "none", NULL };

struct recargs {
	struct recorder_opts rec;
	struct cli_list pids, tids; /* uint32_t */
	struct cli_list comms; /* const char * */
	char *const *command; /* NULL = none */
	uint32_t hz; /* 0 = not given */
	enum recargs_unwind unwind;
	int follow; /* -1 = not given */
	bool oncpu; /* called oncpu-record: only what threads execute */
	bool quiet, verbose;
};

#define HZ_DEFAULT 99
#define HZ_TEXT "99"
#define HZ_MAX 9999
#define HZ_PROCFS_MAX 1000
#define UNWIND_BYTES_MIN (UINT64_C(1) << 20)
#define UNWIND_BYTES_MAX (UINT64_C(16) << 30)

static int set_state(const char *arg, void *opts, struct err *e)
{
	return targets_state_mask(arg, &((struct recargs *)opts)->rec.bpf.state_mask, e);
}

/* "2%", "0.5%", "2": in hundredths of a percent. */
static int set_overhead(const char *arg, void *opts, struct err *e)
{
	char *end;
	double percent = strtod(arg, &end);

	if (end == arg || (*end && strcmp(end, "%") != 0) || !(percent >= 0.01 && percent <= 100) ||
		strspn(arg, "0123456789.%") != strlen(arg)) {
		err_set(e, -EINVAL, "'%s' is not a share of the CPUs' time: 0.01%% to 100%%", arg);
		return -EINVAL;
	}
	((struct recargs *)opts)->rec.bpf.overhead = (uint32_t)(percent * 100 + 0.5);
	return 0;
}

static const struct cli_option options[] = {
	{ CLI_HEADING("What to record (at least one)") },
	{ 'p', "pid", "PID", "the threads of a process; 1,2,3: of these; may be repeated",
		CLI_PIDS(struct recargs, pids), .times = RECARGS_LIST_MAX },
	{ 't', "tid", "TID", "one thread; 1,2,3: these", CLI_TIDS(struct recargs, tids),
		.times = RECARGS_LIST_MAX },
	{ 'c', "comm", "COMM", "every process of that name, those to come included; a,b,c: of these",
		CLI_TEXTS(struct recargs, comms), .times = OFFCPU_COMMS_MAX, .commas = true },
	{ 'a', "all", NULL, "every process", CLI_FLAG(struct recargs, rec.bpf.all) },
	{ 0, "cgroup", "PATH", "only what is in that cgroup or below it", CLI_DIR(struct recargs, rec.cgroup),
		.group = 1 },
	{ 0, "container", "ID", "only that container: Docker, containerd, Podman, CRI-O",
		CLI_TEXT(struct recargs, rec.container), .group = 1 },
	{ .arg = "COMMAND",
		.help = "start it and record it from its first instruction",
		CLI_COMMAND(struct recargs, command) },
	{ CLI_HEADING("How long, and into which file") },
	{ 'o', "output", "FILE", "the capture (default cap.bin); - is standard output",
		CLI_FILE(struct recargs, rec.path) },
	{ 'd', "duration", "TIME",
		"stop after 5, 1.5s, 500ms, 90m, 1h (default: until Ctrl-C or the end of what is recorded)",
		CLI_DURATION(struct recargs, rec.duration_ns, 1000000000) },
	{ 0, "keep", "TIME", "keep only the last TIME (10m), in a ring; SIGUSR2 writes it to FILE at once",
		CLI_DURATION(struct recargs, rec.keep_ns, 1000000000), .min = 1 },
	{ 0, "max-size", "SIZE", "keep only the latest waits that fit into a FILE of SIZE (100M), in a ring",
		CLI_SIZE(struct recargs, rec.max_bytes), .min = UINT64_C(1) << 20, .max = UINT64_C(1) << 50 },
	{ 0, "trigger", "TIME", "stop a second after a wait of at least TIME (500ms) has ended",
		CLI_DURATION(struct recargs, rec.bpf.trigger_ns, 1000000000), .min = 1 },
	{ 0, "follow", NULL, "children too, those that run already included (default with a command)",
		CLI_VALUE(struct recargs, follow, 1) },
	{ 0, "no-follow", NULL, "no children", CLI_VALUE(struct recargs, follow, 0) },
	{ 0, "force", NULL, "replace a FILE that is not a capture", CLI_FLAG(struct recargs, rec.force) },
	{ CLI_HEADING("Which waits") },
	{ 0, "state", "LETTERS", "only those states of ps(1): S, D, T, t, I, P", CLI_CALL(set_state) },
	{ 0, "min", "TIME", "only waits of at least TIME (10us, 5ms)",
		CLI_DURATION(struct recargs, rec.bpf.min_ns, 1) },
	{ 0, "max", "TIME", "only waits of at most TIME", CLI_DURATION(struct recargs, rec.bpf.max_ns, 1),
		.min = 1 },
	{ 0, "preempted", NULL, "also of threads that stayed runnable but lost the CPU",
		CLI_FLAG(struct recargs, rec.bpf.preempted) },
	{ 0, "on-cpu", "HZ", "also what threads execute: samples of a clock, HZ a second (default 99)",
		CLI_NUMBER(struct recargs, rec.bpf.cpu_hz), .min = 1, .max = HZ_MAX, .otherwise = HZ_TEXT },
	{ 0, "wakers", "N",
		"also who ended each wait, and with 2 to 8 who had woken that one, and so on (default 1)",
		CLI_NUMBER(struct recargs, rec.bpf.wakers), .min = 1, .max = OFFCPU_WAKERS_MAX,
		.otherwise = "1" },
	{ 0, "events", NULL, "keep each wait with its times, not sums of waits alike",
		CLI_FLAG(struct recargs, rec.bpf.events) },
	{ 0, "kthreads", NULL, "kernel threads too (with -a)", CLI_FLAG(struct recargs, rec.bpf.kthreads) },
	{ CLI_HEADING("Which stacks") },
	{ 'U', "user-stacks", NULL, "user stacks only", CLI_FLAG(struct recargs, rec.bpf.no_kernel_stacks) },
	{ 'K', "kernel-stacks", NULL, "kernel stacks only",
		CLI_FLAG(struct recargs, rec.bpf.no_user_stacks) },
	{ 0, "depth", "N", "frames of a stack at most (default 127, up to 512)",
		CLI_NUMBER(struct recargs, rec.bpf.depth), .min = 1, .max = OFFCPU_DEPTH_MAX },
	{ 0, "unwind", "HOW",
		"user stacks by dwarf: unwind tables; fp: frame pointers; none; auto (default): by tables if "
		"the "
		"kernel allows it, else fp",
		CLI_WORD(struct recargs, unwind, unwinds) },
	{ 0, "runtimes", "LIST",
		"functions of the programs of these interpreters: auto (default: what the targets have), "
		"none, "
		"python, java, php, perl, ruby, v8",
		CLI_TEXT(struct recargs, rec.runtimes) },
	{ 0, "unwind-memory", "SIZE",
		"of tables in the kernel at most (16M, 1G; default a sixteenth of the memory, up to 512M)",
		CLI_SIZE(struct recargs, rec.unwind_bytes), .min = UNWIND_BYTES_MIN,
		.max = UNWIND_BYTES_MAX },
	{ 0, "sample-stacks", "N",
		"the stacks of one in N waits, 2 to 1000, of a thread that waits often at one place",
		CLI_NUMBER(struct recargs, rec.bpf.sample_stacks), .min = 2, .max = 1000, .group = 2 },
	{ 0, "overhead", "PERCENT",
		"the same, as far as taking stacks would take more of the CPUs' time (2%, 0.5%)",
		CLI_CALL(set_overhead), .group = 2 },
	{ 0, "verify-stacks", NULL, "take each stack in two ways, and count those that differ",
		CLI_FLAG(struct recargs, rec.bpf.verify_stacks) },
	{ 0, "no-symbols", NULL, "do not store what the frames are called",
		CLI_FLAG(struct recargs, rec.no_symbols) },
	{ CLI_HEADING("With which privileges") },
	{ 0, "mode", "MODE",
		"btf, raw (no kernel BTF), procfs (no BPF: estimates by samples) or auto (default): the "
		"first of "
		"these that works",
		CLI_WORD(struct recargs, rec.mode, record_mode_names) },
	{ 0, "btf", "FILE", "with raw: the kernel's BTF, from a file",
		CLI_FILE(struct recargs, rec.bpf.btf_file) },
	{ 'F', "frequency", "HZ",
		"samples a second (default 99): of oncpu-record, up to 9999; with procfs, up to 1000",
		CLI_NUMBER(struct recargs, hz), .min = 1, .max = HZ_MAX },
	{ 0, "ptrace", NULL, "with procfs: user stacks; stops each thread for a moment",
		CLI_FLAG(struct recargs, rec.ptrace) },
	{ CLI_HEADING("Messages") },
	{ 'q', "quiet", NULL, "no progress and no summary", CLI_FLAG(struct recargs, quiet) },
	{ 'v', "verbose", NULL, "every counter in the summary", CLI_FLAG(struct recargs, verbose) },
};

/* Names of runtimes in --runtimes: "auto" and "none" are right in every mode. */
static bool names_runtimes(const struct recorder_opts *r)
{
	return r->runtimes && strcmp(r->runtimes, "auto") != 0 && strcmp(r->runtimes, "none") != 0;
}

#define IN(mode) (1U << RECORD_MODE_##mode)

/* An option that not every mode has. */
struct moded {
	bool given;
	uint32_t modes; /* that have it */
	const char *name, *why;
};

#define MODED_MAX 16

/* Store those that were given in RET. Returns their number. */
static size_t given_moded(const struct recargs *o, struct moded ret[MODED_MAX])
{
	const struct recorder_opts *r = &o->rec;
	const struct moded all[] = {
		{ r->bpf.cpu_hz && !o->oncpu, IN(BTF), "--on-cpu",
			"goes with mode btf: --mode btf, or auto" },
		{ r->bpf.wakers, IN(BTF), "--wakers", "goes with mode btf: --mode btf, or auto" },
		{ r->keep_ns, IN(BTF) | IN(RAW), "--keep", "takes BPF: mode procfs keeps everything" },
		{ r->max_bytes, IN(BTF) | IN(RAW), "--max-size", "takes BPF: mode procfs keeps everything" },
		{ r->bpf.trigger_ns, IN(BTF) | IN(RAW), "--trigger",
			"takes BPF: --mode procfs samples waits" },
		{ r->bpf.events, IN(BTF) | IN(RAW), "--events", "takes BPF: --mode procfs samples waits" },
		{ r->bpf.sample_stacks, IN(BTF) | IN(RAW), "--sample-stacks",
			"takes BPF: --mode procfs samples anyway" },
		{ r->bpf.overhead, IN(BTF) | IN(RAW), "--overhead",
			"takes BPF: --mode procfs samples anyway" },
		{ o->hz && !o->oncpu, IN(PROCFS), "-F", "goes with mode procfs: --mode procfs, or auto" },
		{ r->ptrace, IN(PROCFS), "--ptrace", "goes with mode procfs: --mode procfs, or auto" },
		{ r->bpf.btf_file, IN(RAW), "--btf", "goes with mode raw: --mode raw, or auto" },
		{ r->unwind != RECORDER_UNWIND_AUTO, IN(BTF) | IN(RAW), "--unwind",
			"dwarf and fp take BPF: --mode procfs has --ptrace, or --unwind none" },
		{ r->unwind_bytes, IN(BTF) | IN(RAW), "--unwind-memory",
			"is of tables for BPF: --mode procfs has none" },
		{ r->bpf.verify_stacks, IN(BTF) | IN(RAW), "--verify-stacks",
			"takes BPF: --mode procfs samples waits" },
		{ names_runtimes(r), IN(BTF), "--runtimes",
			"with names goes with mode btf: --mode btf, or auto" },
	};

	size_t n = 0;

	_Static_assert(ARRAY_LEN(all) <= MODED_MAX, "MODED_MAX");
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].given)
			ret[n++] = all[i];
	return n;
}

/*
 * Check for options that mean nothing in the requested mode, or of which auto could use one alone; note those
 * that mean nothing if auto need not go beyond a mode.
 */
static int check_mode(const struct cli *c, struct recargs *o)
{
	struct moded given[MODED_MAX];
	const size_t n = given_moded(o, given);

	for (size_t i = 0; i < n; i++) {
		if (o->rec.mode != RECORD_MODE_AUTO && !(given[i].modes & 1U << o->rec.mode))
			return cli_usage(c, "%s %s", given[i].name, given[i].why);
		for (size_t k = 0; k < i && o->rec.mode == RECORD_MODE_AUTO; k++)
			if (!(given[i].modes & given[k].modes))
				return cli_usage(
					c, "%s and %s: no mode has both", given[k].name, given[i].name);
		for (unsigned int m = 0; m < RECORD_MODE_COUNT && o->rec.mode == RECORD_MODE_AUTO; m++)
			if (!(given[i].modes & ((2U << m) - 1)))
				o->rec.misfits[m] = given[i].name;
	}
	return CLI_OK;
}

/* Check for options that mean nothing beside others, in every mode. */
static int check_unused(const struct cli *c, const struct recargs *o)
{
	const struct recorder_opts *r = &o->rec;
	const char *without = r->bpf.no_user_stacks && o->unwind != UNWIND_NONE ? "-K"
			      : o->unwind == UNWIND_NONE                        ? "--unwind none"
			      : o->unwind == UNWIND_FP                          ? "--unwind fp"
										: NULL;

	if (o->follow >= 0 && r->bpf.all)
		return cli_usage(c,
			"--%s goes with -p, -t, -c or a command: every process is recorded already",
			o->follow ? "follow" : "no-follow");
	if (without && r->unwind_bytes)
		return cli_usage(c, "--unwind-memory is of unwind tables: with %s there are none", without);
	if (without && names_runtimes(r))
		return cli_usage(c, "--runtimes takes unwind tables: with %s there are none", without);
	if (r->ptrace && r->bpf.no_user_stacks)
		return cli_usage(c, "--ptrace is for user stacks: with %s there are none", without);
	if (r->bpf.preempted && r->bpf.state_mask)
		return cli_usage(c, "--preempted records waits in state R, which --state leaves out");
	return CLI_OK;
}

/* What oncpu-record refuses: options of waits, then those of the other modes. */
static const char *const of_waits[] = { "preempted", "state", "min", "max", "trigger", "wakers",
	"sample-stacks", "overhead", "on-cpu" },
			 *const of_modes[] = { "btf", "ptrace" };

/* Check the options of samples of what threads execute. */
static int check_oncpu(const struct cli *c, const struct recargs *o)
{
	const struct offcpu_opts *b = &o->rec.bpf;
	const bool given[ARRAY_LEN(of_waits)] = { b->preempted, b->state_mask, b->min_ns, b->max_ns,
		b->trigger_ns, b->wakers, b->sample_stacks, b->overhead, b->cpu_hz };

	if (!o->oncpu && o->hz > HZ_PROCFS_MAX)
		return cli_usage(
			c, "option '-F': '%" PRIu32 "' is out of range: 1 to %d", o->hz, HZ_PROCFS_MAX);
	if (!o->oncpu)
		return CLI_OK;
	if (o->rec.mode != RECORD_MODE_AUTO && o->rec.mode != RECORD_MODE_BTF)
		return cli_usage(c, "what threads execute is sampled in mode btf: --mode btf, or auto");
	for (size_t i = 0; i < ARRAY_LEN(of_waits); i++)
		if (given[i])
			return cli_usage(
				c, "--%s is of waits: offcpu-record --on-cpu records both", of_waits[i]);
	return CLI_OK;
}

static bool is_one_of(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* The table of oncpu-record: what it refuses is taken, for the message, but not shown. */
static void make_oncpu(struct cli_option own[ARRAY_LEN(options)])
{
	static const char *const help[][2] = {
		{ "events", "keep each sample with its time, not sums of samples" },
		{ "max-size", "keep only the latest samples that fit into a FILE of SIZE (100M), in a ring" },
		{ "frequency", "samples a second that a thread executes (default 99, up to 9999)" },
		{ "mode", "btf, or auto (default), which is the same here" },
	};

	memcpy(own, options, sizeof(options));
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if (own[i].kind == CLI_KIND_HEADING && strcmp(own[i].help, "Which waits") == 0)
			own[i].help = "Which samples";
		if (!own[i].name)
			continue;
		own[i].hidden = is_one_of(of_waits, ARRAY_LEN(of_waits), own[i].name) ||
				is_one_of(of_modes, ARRAY_LEN(of_modes), own[i].name);
		for (size_t k = 0; k < ARRAY_LEN(help); k++)
			if (strcmp(help[k][0], own[i].name) == 0)
				own[i].help = help[k][1];
	}
}

/* Check the combination of the options: CLI_OK if it is valid. */
static int check_opts(const struct cli *c, void *opts)
{
	static const enum recorder_unwind unwind[] = { [UNWIND_AUTO] = RECORDER_UNWIND_AUTO,
		[UNWIND_DWARF] = RECORDER_UNWIND_DWARF,
		[UNWIND_FP] = RECORDER_UNWIND_FP,
		[UNWIND_NONE] = RECORDER_UNWIND_AUTO };
	const char *const *comms;
	struct recargs *o = opts;
	struct err e;
	struct offcpu_opts *b = &o->rec.bpf;
	bool some = o->pids.n || o->tids.n || o->comms.n || o->command;

	/* alone, they select every process in the cgroup */
	b->use_cgroup = o->rec.cgroup || o->rec.container;
	b->all |= b->use_cgroup && !some;
	if (!some && !b->all)
		return cli_usage(c, "what to record? give -p PID, -t TID, -c COMM, -a, --cgroup PATH, "
				    "--container ID, or -- COMMAND");
	if (some && b->all)
		return cli_usage(c, "-a is every process already: drop the other targets");
	if (b->kthreads && !b->all)
		return cli_usage(c, "--kthreads goes with -a, or with --cgroup alone");
	if (b->no_kernel_stacks && b->no_user_stacks)
		return cli_usage(c, "-U and -K together leave no stack");
	if (o->unwind == UNWIND_NONE && b->no_kernel_stacks)
		return cli_usage(c, "-U and --unwind none together leave no stack");
	o->rec.unwind = unwind[o->unwind];
	b->no_user_stacks |= o->unwind == UNWIND_NONE;
	if (!o->rec.duration_ns)
		return cli_usage(c,
			"option '--duration': a recording of 0 s records nothing; without -d it lasts "
			"until Ctrl-C");
	if (b->max_ns && b->min_ns > b->max_ns)
		return cli_usage(c, "--min is longer than --max: no wait can be both");
	o->rec.pids = o->pids.p;
	o->rec.n_pids = o->pids.n;
	o->rec.tids = o->tids.p;
	o->rec.n_tids = o->tids.n;
	o->rec.comms = comms = o->comms.p;
	o->rec.n_comms = o->comms.n;
	for (size_t i = 0; i < o->comms.n; i++)
		if (!*comms[i] || strlen(comms[i]) >= OFFCPU_COMM_LEN)
			return cli_usage(c,
				"option '--comm': '%s' is not a thread name: 1 to %d bytes%s%.*s%s", comms[i],
				OFFCPU_COMM_LEN - 1, *comms[i] ? "; the kernel cuts it to '" : "",
				OFFCPU_COMM_LEN - 1, comms[i], *comms[i] ? "'" : "");
	b->follow = o->follow < 0 ? o->command != NULL : o->follow;
	b->single = o->rec.n_pids == 1 && !o->rec.n_tids && !o->rec.n_comms && !o->command && !b->follow;
	b->single_pid = b->single ? o->rec.pids[0] : 0;
	o->rec.count_children = o->follow < 0 && o->rec.n_pids && !b->use_cgroup;
	b->use_tids = o->rec.n_tids > 0;
	b->use_comms = o->rec.n_comms > 0;
	b->use_exec = o->command != NULL;
	if (runtimes_check(o->rec.runtimes, &e) != 0)
		return cli_usage(c, "option '--runtimes': %s", e.msg);
	if (check_oncpu(c, o) != CLI_OK || check_mode(c, o) != CLI_OK || check_unused(c, o) != CLI_OK)
		return CLI_USAGE;
	if (o->oncpu) {
		b->cpu_hz = o->hz ? o->hz : HZ_DEFAULT;
		b->no_waits = true;
	}
	o->rec.hz = o->hz ? o->hz : HZ_DEFAULT;
	return CLI_OK;
}

/* If called oncpu-record, it uses that name. */
static struct cli cli = {
	.name = "offcpu-record",
	.about = "Record who waited, where and how long, into a capture that symbolize reads.",
	.status = "Status: 0 complete; 1 recorded, but something was lost or could not be written; 2 not "
		  "recorded; 64 bad command line.",
	CLI_OPTIONS(options),
	.check = check_opts,
};

/*
 * recording - a recording in a mode that works here (record/options.h).
 *
 * The calls are those of record/session.h, with the same meaning. Mode auto tries
 * the modes in order, and goes on to the next one only if the kernel refuses or a
 * privilege is missing. The failed attempts are reported and kept in the capture.
 */

struct recording_state {
	uint64_t start_ns, now_ns;
	uint64_t lost;
	const char *place; /* of the capture, as cap_writer_place() */
};

struct recording {
	enum record_mode mode;
	struct recorder *rec; /* btf and raw */
	struct procfs_session *proc; /* procfs */
	char tried[1024];
};

static int open_mode(struct recording *r, struct recorder_opts *o, bool *refused, struct err *e)
{
	o->mode = r->mode;
	o->bpf.raw = r->mode == RECORD_MODE_RAW;
	*refused = false;
	if (o->bpf.no_waits && r->mode != RECORD_MODE_BTF)
		return err_set(
			e, -ENOTSUP, "what threads execute is sampled in mode btf, which does not work here");
	return r->mode == RECORD_MODE_PROCFS ? procfs_session_open(o, &r->proc, e)
					     : recorder_open(o, &r->rec, refused, e);
}

static void note(struct recording *r, const struct err *e)
{
	size_t len = strlen(r->tried);

	snprintf(r->tried + len, sizeof(r->tried) - len, "%snot %s: %s%s%s", len ? "\n" : "",
		record_mode_name(r->mode), e->msg, e->hint[0] ? "; " : "", e->hint);
}

static int climb_down(struct recording *r, struct recorder_opts *o, struct err *e)
{
	struct err why = { 0 };
	bool refused = true;
	int rc = -ENOTSUP;

	for (r->mode = RECORD_MODE_BTF; refused && r->mode < RECORD_MODE_COUNT; r->mode++) {
		why = (struct err){ 0 };
		rc = open_mode(r, o, &refused, &why);
		if (!rc)
			return 0;
		if (refused)
			note(r, &why);
		o->tried = r->tried;
	}
	if (e)
		*e = why;
	return rc;
}

/* Without /proc no mode can identify a process. */
static int need_proc(struct err *e)
{
	int code;

	if (access("/proc/self/stat", R_OK) == 0)
		return 0;
	code = err_sys(e, -errno, "cannot read '/proc/self/stat'");
	err_hint(e, "/proc is not mounted: mount -t proc proc /proc");
	return code;
}

/* OPTS must live as long as *RET. */
static int recording_open(struct recorder_opts *opts, struct recording **ret, struct err *e)
{
	struct recording *r;
	bool refused;
	int rc = need_proc(e);

	if (rc)
		return rc;
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_nomem(e, "the recording");
	r->mode = opts->mode;
	rc = opts->mode == RECORD_MODE_AUTO ? climb_down(r, opts, e) : open_mode(r, opts, &refused, e);
	if (rc) {
		free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

static void recording_close(struct recording *r)
{
	if (!r)
		return;
	recorder_close(r->rec);
	procfs_session_close(r->proc);
	free(r);
}

static enum record_mode recording_mode(const struct recording *r)
{
	return r->mode;
}

/*
 * Why this mode is used: a line for each mode that did not work, without a newline
 * at the end; "" = nothing to report.
 */
static const char *recording_tried(const struct recording *r)
{
	return r->tried;
}

static int recording_start(struct recording *r, struct err *e)
{
	return r->proc ? procfs_session_start(r->proc, e) : recorder_start(r->rec, e);
}

static void recording_hold(struct recording *r, uint32_t pid)
{
	if (r->rec)
		recorder_hold(r->rec, pid);
}

/* The command runs as PID; HELD: it is still held at its exec. */
static int recording_command(struct recording *r, uint32_t pid, bool held, struct err *e)
{
	return r->proc ? procfs_session_command(r->proc, pid, e)
		       : recorder_command(r->rec, held ? pid : 0, e);
}

static int recording_fd(const struct recording *r)
{
	return r->proc ? -1 : recorder_fd(r->rec);
}

static uint64_t recording_timeout_ns(const struct recording *r)
{
	return r->proc ? procfs_session_timeout_ns(r->proc) : recorder_timeout_ns(r->rec);
}

static int recording_service(struct recording *r, struct err *e)
{
	return r->proc ? procfs_session_service(r->proc, e) : recorder_service(r->rec, e);
}

static int recording_stop(struct recording *r, const char *why, struct err *e)
{
	return r->proc ? procfs_session_stop(r->proc, why, e) : recorder_stop(r->rec, why, e);
}

static void recording_state(struct recording *r, struct recording_state *ret)
{
	struct procfs_session_stats ps;
	struct recorder_stats st;
	struct counters c;

	if (r->proc) {
		procfs_session_stats(r->proc, &ps);
		*ret = (struct recording_state){ ps.start_ns, ps.now_ns, ps.lost, ps.place };
	} else {
		recorder_stats(r->rec, &st);
		record_stats_counters(&st, &c);
		*ret = (struct recording_state){ st.start_ns, st.now_ns, counters_lost(&c), st.place };
	}
}

static void recording_release(struct recording *r)
{
	if (r->rec)
		recorder_release(r->rec);
}

static bool recording_full(const struct recording *r)
{
	return r->rec && recorder_full(r->rec);
}

static uint64_t recording_triggered(const struct recording *r, uint32_t *tid)
{
	return r->rec ? recorder_triggered(r->rec, tid) : 0;
}

static bool recording_comm_seen(const struct recording *r, const char *comm)
{
	return r->proc ? procfs_session_comm_seen(r->proc, comm) : recorder_comm_seen(r->rec, comm);
}

static void recording_progress(struct recording *r, struct buf *b)
{
	struct recorder_stats st;

	if (r->proc) {
		procfs_session_progress(r->proc, b);
		return;
	}
	recorder_stats(r->rec, &st);
	record_text_progress(b, &st);
}

static void recording_summary(struct recording *r, const struct record_text_report *reported, struct buf *b)
{
	struct recorder_stats st;

	if (r->proc) {
		procfs_session_summary(r->proc, reported, b);
		return;
	}
	recorder_stats(r->rec, &st);
	record_text_summary(b, &st, reported);
}

struct run {
	const struct recargs *o;
	enum record_mode requested;
	struct recording *rec;
	struct targets targets;
	struct cgroup *in; /* --cgroup, --container; NULL = none */
	uint32_t mapped; /* runtimes_mapped() of the targets */
	struct command command;
	int signal_fd;
	bool tty, line_shown;
	uint64_t shown_ns;
	uint64_t triggered_ns; /* when the end of a wait of --trigger was seen; 0 = not yet */
	char trigger[64];
	bool full; /* --max-size leaves no room for more */
};

static void clear_line(struct run *r)
{
	if (r->line_shown)
		fputs("\r\033[K", stderr);
	r->line_shown = false;
}

static void show_progress(struct run *r)
{
	uint64_t now = now_ns();
	struct buf b = { 0 };

	if (!r->tty || r->o->quiet || now - r->shown_ns < 250000000)
		return;
	r->shown_ns = now;
	r->line_shown = true;
	buftext_str(&b, "\r\033[K");
	recording_progress(r->rec, &b);
	fwrite(b.p, 1, b.len, stderr);
	buf_free(&b);
}

#define FULL "--max-size leaves no room for waits"
#define AFTER_TRIGGER_NS UINT64_C(1000000000)

/* A wait of --trigger has ended, and the recording has gone on for a while. */
static bool is_triggered(struct run *r, uint64_t now)
{
	uint64_t ns;
	uint32_t tid;

	if (r->triggered_ns)
		return now - r->triggered_ns >= AFTER_TRIGGER_NS;
	ns = recording_triggered(r->rec, &tid);
	if (ns) {
		r->triggered_ns = now;
		snprintf(r->trigger, sizeof(r->trigger), "a wait of %.3f s of thread %" PRIu32,
			(double)ns / 1e9, tid);
	}
	return false;
}

/* Why the recording should end now, or NULL. */
static const char *end_reason(struct run *r, uint64_t start_ns, uint64_t now)
{
	struct signalfd_siginfo si;

	while (read(r->signal_fd, &si, sizeof(si)) == sizeof(si))
		if (si.ssi_signo == SIGUSR2)
			recording_release(r->rec);
		else if (si.ssi_signo != SIGCHLD)
			return si.ssi_signo == SIGINT    ? "SIGINT"
			       : si.ssi_signo == SIGTERM ? "SIGTERM"
							 : "SIGHUP";
	if (is_triggered(r, now))
		return r->trigger;
	r->full = recording_full(r->rec);
	if (r->full)
		return FULL;
	if (now - start_ns >= r->o->rec.duration_ns)
		return "duration";
	if (r->o->command && command_ended(&r->command))
		return "command exited";
	if (targets_ended(&r->targets))
		return "target exited";
	if (r->in && cgroup_removed(r->in))
		return "cgroup removed";
	return NULL;
}

static struct timespec timeout(const struct run *r, uint64_t start_ns, uint64_t now)
{
	uint64_t past = now - start_ns, ns = recording_timeout_ns(r->rec);

	ns = r->o->rec.duration_ns <= past ? 0 : MIN(ns, r->o->rec.duration_ns - past);
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
}

static int loop(struct run *r, const char **why, struct err *e)
{
	struct recording_state st;
	int rc = 0;

	recording_state(r->rec, &st);
	while (!rc && !(*why = end_reason(r, st.start_ns, now_ns()))) {
		struct pollfd fds[] = { { .fd = recording_fd(r->rec), .events = POLLIN },
			{ .fd = r->signal_fd, .events = POLLIN },
			{ .fd = targets_fd(&r->targets), .events = POLLIN } };
		struct timespec wait = timeout(r, st.start_ns, now_ns());

		if (ppoll(fds, ARRAY_LEN(fds), &wait, NULL) < 0 && errno != EINTR)
			return err_sys(e, -errno, "cannot wait");
		rc = recording_service(r->rec, e);
		show_progress(r);
	}
	clear_line(r);
	return rc;
}

static void summary(const struct run *r)
{
	struct recording_state st;
	struct record_text_report reported = {
		.name = cli.name, .command = r->o->command ? &r->command : NULL, .verbose = r->o->verbose
	};
	struct buf b = { 0 };

	if (r->o->quiet)
		return;
	recording_state(r->rec, &st);
	reported.path = st.place;
	recording_summary(r->rec, &reported, &b);
	fwrite(b.p, 1, b.len, stderr);
	buf_free(&b);
}

/* Say whose functions will be shown, and whose not, as far as it is known before the recording. */
static void print_runtimes(const struct run *r)
{
	const struct recorder_opts *o = &r->o->rec;
	struct recorder_stats st = { 0 };
	char list[256];

	if (r->o->quiet || (o->runtimes && strcmp(o->runtimes, "none") == 0))
		return;
	if (r->rec->rec)
		recorder_stats(r->rec->rec, &st);
	if (st.runtimes.summary[0])
		cli_warn(&cli, "runtimes: %s", st.runtimes.summary);
	if (r->mapped && !(st.by_table && r->rec->mode == RECORD_MODE_BTF))
		cli_warn(&cli, "runtimes: %s (functions are shown in mode btf with unwind tables only)",
			runtimes_list(r->mapped, list, sizeof(list)));
}

/* Mode auto has chosen a mode that has not all that was requested, as those that have it do not work here. */
static void warn_misfits(const struct run *r)
{
	const enum record_mode mode = recording_mode(r->rec);
	struct moded given[MODED_MAX];
	const size_t n = r->requested == RECORD_MODE_AUTO ? given_moded(r->o, given) : 0;

	for (size_t i = 0; i < n; i++)
		if (!(given[i].modes & 1U << mode))
			cli_warn(&cli, "%s is not used in mode %s", given[i].name, record_mode_name(mode));
}

/* Print which mode is used and why, if it is not the best one. */
static void print_mode(const struct run *r)
{
	char *tried = strdupa(recording_tried(r->rec)), *save;

	if (r->o->quiet || !*tried)
		return;
	for (char *line = strtok_r(tried, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		cli_warn(&cli, "%s", line);
	cli_warn(&cli, "recording in mode %s", record_mode_name(recording_mode(r->rec)));
}

static int catch_signals(struct run *r, sigset_t *old, struct err *e)
{
	struct sigaction hup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR2);
	/* under nohup(1) SIGHUP is ignored: keep it so */
	if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, old);
	/* exceeding the file size limit is a write error, reported like a full disk */
	signal(SIGXFSZ, SIG_IGN);
	r->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return r->signal_fd < 0 ? err_sys(e, -errno, "cannot catch signals") : 0;
}

/*
 * With CAP_SYS_PTRACE, the command is held at its exec until the recorder knows
 * its new image. Not without it: a set-user-ID program would lose the effect of
 * that bit.
 */
static int start_command(struct run *r, const struct recargs *o, struct err *e)
{
	uint32_t pid = o->rec.command_pid;
	int rc;

	if (r->command.hold)
		recording_hold(r->rec, pid);
	rc = command_go(&r->command, o->command[0], e);
	if (!rc)
		rc = recording_command(r->rec, pid, r->command.held, e);
	command_release(&r->command);
	return rc;
}

/*
 * Refuse other users' processes at once. Mode procfs needs no check: there the
 * kernel shows of them only what it shows to every user.
 */
static int check_owner(const struct recargs *o, struct err *e)
{
	int rc = o->rec.mode == RECORD_MODE_PROCFS ? 0 : owner_check(o->rec.pids, o->rec.n_pids, e);

	return rc || o->rec.mode == RECORD_MODE_PROCFS ? rc : owner_check(o->rec.tids, o->rec.n_tids, e);
}

static int open_cgroup(struct run *r, struct recorder_opts *o, struct err *e)
{
	int rc = 0;

	if (o->cgroup)
		rc = cgroup_open(o->cgroup, &r->in, e);
	else if (o->container)
		rc = container_open(o->container, &r->in, e);
	if (rc || !r->in)
		return rc;
	o->in = r->in;
	o->bpf.cgroup_id = r->in->id;
	o->bpf.cgroup_v1 = r->in->controller[0] ? r->in->controller : NULL;
	return 0;
}

/* A recording takes up to 200 descriptors, more with many CPUs; the command gets the caller's limit. */
static void raise_files(struct command *command)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	command->files = files;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* Do everything up to the first instruction that is recorded. */
static int begin(struct run *r, struct recargs *o, struct err *e)
{
	bool unknown = false;
	sigset_t old;
	int rc = catch_signals(r, &old, e);

	raise_files(&r->command);
	if (!rc)
		rc = targets_open(&r->targets, o->rec.pids, o->rec.n_pids, o->rec.tids, o->rec.n_tids, e);
	rc = rc ? rc : check_owner(o, e);
	if (!rc)
		rc = open_cgroup(r, &o->rec, e);
	r->mapped = runtimes_mapped(o->rec.pids, o->rec.n_pids, &unknown) |
		    runtimes_mapped(o->rec.tids, o->rec.n_tids, &unknown);
	r->command.hold = priv_have(CAP_SYS_PTRACE);
	if (!rc && o->command)
		rc = command_prepare(&r->command, o->command, &old, e);
	o->rec.command_pid = (uint32_t)r->command.pid;
	if (!rc)
		rc = recording_open(&o->rec, &r->rec, e);
	if (!rc) {
		print_mode(r);
		warn_misfits(r);
		rc = recording_start(r->rec, e);
	}
	if (!rc && o->command)
		rc = start_command(r, o, e);
	if (!rc)
		print_runtimes(r);
	return rc;
}

/* Report each name that no process had: false if there is one. */
static bool all_named(const struct run *r)
{
	const struct recorder_opts *o = &r->o->rec;
	bool all = true;
	struct err e;

	for (size_t i = 0; i < o->n_comms; i++) {
		if (recording_comm_seen(r->rec, o->comms[i]))
			continue;
		e = (struct err){ 0 };
		targets_unnamed(o->comms[i], &e);
		cli_error(&cli, &e);
		all = false;
	}
	return all;
}

static int record(struct run *r, struct recargs *o)
{
	struct recording_state st;
	const char *why = NULL;
	struct err e = { 0 };
	int rc;

	rc = begin(r, o, &e);
	if (rc) {
		cli_error(&cli, &e);
		return rc == -ECANCELED ? CLI_USAGE : CLI_FAILED;
	}
	if (loop(r, &why, &e) != 0 || recording_stop(r->rec, why, &e) != 0) {
		clear_line(r);
		cli_error(&cli, &e);
		summary(r);
		return CLI_INCOMPLETE;
	}
	recording_state(r->rec, &st);
	summary(r);
	if (r->full) {
		err_set(&e, -EFBIG,
			"'%s': processes and stacks alone take three quarters of --max-size: ended early",
			o->rec.path);
		err_hint(&e, "raise --max-size, or record less");
		cli_error(&cli, &e);
	}
	return all_named(r) && !st.lost && !r->full ? CLI_OK : CLI_INCOMPLETE;
}

int main(int argc, char **argv)
{
	struct recargs o = { .rec = { .path = "cap.bin",
				     .bpf.depth = 127,
				     .duration_ns = UINT64_MAX,
				     .words = (const char *const *)argv,
				     .n_words = (size_t)argc },
		.follow = -1 };
	struct run r = {
		.o = &o, .signal_fd = -1, .tty = isatty(STDERR_FILENO), .command = { .start_fd = -1 }
	};
	struct owner owner;
	struct err e;
	struct cli_option own[ARRAY_LEN(options)];
	int status;

	if (strcmp(program_invocation_short_name, "oncpu-record") == 0) {
		make_oncpu(own);
		cli.options = own;
		cli.name = "oncpu-record";
		cli.about = "Record what threads execute, by samples, into a capture that symbolize reads.";
		o.oncpu = true;
	}
	if (!cli_parse(&cli, argc, argv, &o, &status))
		return status;
	if (owner_become(&owner, &e) != 0) {
		cli_error(&cli, &e);
		cli_free(&cli, &o);
		return CLI_FAILED;
	}
	r.requested = o.rec.mode;
	o.rec.bpf.owner_only = owner.only;
	o.rec.bpf.owner_uid = owner.uid;
	o.rec.bpf.owner_gid = owner.gid;
	o.rec.mask_kernel = owner.no_kernel;
	status = record(&r, &o);
	command_close(&r.command);
	recording_close(r.rec);
	targets_close(&r.targets);
	cgroup_close(r.in);
	cli_free(&cli, &o);
	return status;
}
