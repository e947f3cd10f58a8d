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
#include "record/session.h"
#include "system/command.h"
#include "system/container.h"
#include "system/owner.h"
#include "system/privileges.h"
#include "system/targets.h"

#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

/*
 * recargs - the command line of offcpu-record.
 */

#define RECARGS_LIST_MAX 256

struct recargs {
	struct recorder_opts rec;
	uint32_t pids[RECARGS_LIST_MAX], tids[RECARGS_LIST_MAX];
	const char *comms[RECARGS_LIST_MAX];
	char *const *command; /* NULL = none */
	uint64_t duration_ns; /* 0 = no limit */
	int follow; /* -1 = not said */
	bool no_unwind; /* --unwind none */
	bool quiet, verbose;
};

#define HZ_MAX 1000
#define HZ_DEFAULT 99
#define UNWIND_BYTES_MIN (UINT64_C(1) << 20)
#define UNWIND_BYTES_MAX (UINT64_C(16) << 30)

enum {
	OPT_FOLLOW = 256,
	OPT_NO_FOLLOW,
	OPT_FORCE,
	OPT_STATE,
	OPT_MIN,
	OPT_MAX,
	OPT_PREEMPTED,
	OPT_KTHREADS,
	OPT_DEPTH,
	OPT_UNWIND,
	OPT_UNWIND_MEMORY,
	OPT_NO_SYMBOLS,
	OPT_MODE,
	OPT_BTF,
	OPT_PTRACE,
	OPT_CGROUP,
	OPT_CONTAINER
};

static const struct option long_opts[] = {
	{ "pid", required_argument, NULL, 'p' },
	{ "tid", required_argument, NULL, 't' },
	{ "comm", required_argument, NULL, 'c' },
	{ "all", no_argument, NULL, 'a' },
	{ "output", required_argument, NULL, 'o' },
	{ "duration", required_argument, NULL, 'd' },
	{ "follow", no_argument, NULL, OPT_FOLLOW },
	{ "no-follow", no_argument, NULL, OPT_NO_FOLLOW },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "state", required_argument, NULL, OPT_STATE },
	{ "min", required_argument, NULL, OPT_MIN },
	{ "max", required_argument, NULL, OPT_MAX },
	{ "preempted", no_argument, NULL, OPT_PREEMPTED },
	{ "kthreads", no_argument, NULL, OPT_KTHREADS },
	{ "user-stacks", no_argument, NULL, 'U' },
	{ "kernel-stacks", no_argument, NULL, 'K' },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "unwind", required_argument, NULL, OPT_UNWIND },
	{ "unwind-memory", required_argument, NULL, OPT_UNWIND_MEMORY },
	{ "no-symbols", no_argument, NULL, OPT_NO_SYMBOLS },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "btf", required_argument, NULL, OPT_BTF },
	{ "frequency", required_argument, NULL, 'F' },
	{ "ptrace", no_argument, NULL, OPT_PTRACE },
	{ "cgroup", required_argument, NULL, OPT_CGROUP },
	{ "container", required_argument, NULL, OPT_CONTAINER },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static int add_id(const char *arg, uint32_t *list, size_t *n, struct err *e)
{
	uint64_t id;
	int rc = *n == RECARGS_LIST_MAX ? err_set(e, -E2BIG, "more than %d targets", RECARGS_LIST_MAX)
					: cli_u64(arg, 1, 4194304, &id, e);

	if (!rc)
		list[(*n)++] = (uint32_t)id;
	return rc;
}

static int add_comm(const char *arg, struct recargs *o, struct err *e)
{
	if (!*arg || strlen(arg) >= OFFCPU_COMM_LEN)
		return err_set(e, -EINVAL, "'%s' is no thread name: 1 to %d bytes", arg, OFFCPU_COMM_LEN - 1);
	if (o->rec.n_comms == OFFCPU_COMMS_MAX)
		return err_set(e, -E2BIG, "more than %d names", OFFCPU_COMMS_MAX);
	o->comms[o->rec.n_comms++] = arg;
	return 0;
}

static int set_depth(const char *arg, struct recargs *o, struct err *e)
{
	uint64_t depth;
	int rc = cli_u64(arg, 1, OFFCPU_DEPTH_MAX, &depth, e);

	if (!rc)
		o->rec.bpf.depth = (uint32_t)depth;
	return rc;
}

static int set_hz(const char *arg, struct recargs *o, struct err *e)
{
	uint64_t hz;
	int rc = cli_u64(arg, 1, HZ_MAX, &hz, e);

	if (!rc)
		o->rec.hz = (uint32_t)hz;
	return rc;
}

static int set_unwind(const char *arg, struct recargs *o, struct err *e)
{
	if (strcmp(arg, "auto") == 0)
		o->rec.unwind = RECORDER_UNWIND_AUTO;
	else if (strcmp(arg, "dwarf") == 0)
		o->rec.unwind = RECORDER_UNWIND_DWARF;
	else if (strcmp(arg, "fp") == 0)
		o->rec.unwind = RECORDER_UNWIND_FP;
	else if (strcmp(arg, "none") == 0)
		o->no_unwind = true;
	else
		return err_set(e, -EINVAL, "'%s' is no way to unwind: auto, dwarf, fp or none", arg);
	return 0;
}

/* Options that take an argument which can be wrong. */
static int take_value(int opt, const char *arg, struct recargs *o, struct err *e)
{
	switch (opt) {
	case 'p':
		return add_id(arg, o->pids, &o->rec.n_pids, e);
	case 't':
		return add_id(arg, o->tids, &o->rec.n_tids, e);
	case 'c':
		return add_comm(arg, o, e);
	case 'd':
		return cli_duration(arg, 1000000000, &o->duration_ns, e);
	case 'F':
		return set_hz(arg, o, e);
	case OPT_MODE:
		return recmode_parse(arg, &o->rec.mode, e);
	case OPT_STATE:
		return targets_state_mask(arg, &o->rec.bpf.state_mask, e);
	case OPT_MIN:
		return cli_duration(arg, 1, &o->rec.bpf.min_ns, e);
	case OPT_MAX:
		return cli_duration(arg, 1, &o->rec.bpf.max_ns, e);
	case OPT_UNWIND:
		return set_unwind(arg, o, e);
	case OPT_UNWIND_MEMORY:
		return cli_size(arg, UNWIND_BYTES_MIN, UNWIND_BYTES_MAX, &o->rec.unwind_bytes, e);
	default:
		return set_depth(arg, o, e);
	}
}

static void take_flag(int opt, const char *arg, struct recargs *o)
{
	switch (opt) {
	case 'a':
		o->rec.bpf.all = true;
		break;
	case 'o':
		o->rec.path = arg;
		break;
	case OPT_BTF:
		o->rec.bpf.btf_file = arg;
		break;
	case OPT_CGROUP:
		o->rec.cgroup = arg;
		break;
	case OPT_CONTAINER:
		o->rec.container = arg;
		break;
	case OPT_PTRACE:
		o->rec.ptrace = true;
		break;
	case OPT_FOLLOW:
	case OPT_NO_FOLLOW:
		o->follow = opt == OPT_FOLLOW;
		break;
	case OPT_FORCE:
		o->rec.force = true;
		break;
	case OPT_NO_SYMBOLS:
		o->rec.no_symbols = true;
		break;
	case OPT_PREEMPTED:
		o->rec.bpf.preempted = true;
		break;
	case OPT_KTHREADS:
		o->rec.bpf.kthreads = true;
		break;
	case 'U':
		o->rec.bpf.no_kernel_stacks = true;
		break;
	case 'K':
		o->rec.bpf.no_user_stacks = true;
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'v':
		o->verbose = true;
		break;
	}
}

/* What is for mode procfs, and what it cannot do, where it was asked for; where it is the last that is left,
 * it says so itself.
 */
static int check_procfs(const struct cli *c, const struct recargs *o)
{
	const struct recorder_opts *r = &o->rec;

	if ((r->mode == RECMODE_BTF || r->mode == RECMODE_RAW) && (r->ptrace || r->hz))
		return cli_usage(
			c, "%s goes with mode procfs: --mode procfs, or auto", r->ptrace ? "--ptrace" : "-F");
	if (r->mode != RECMODE_PROCFS)
		return CLI_OK;
	if (r->unwind != RECORDER_UNWIND_AUTO)
		return cli_usage(
			c, "--unwind dwarf and fp take BPF: --mode procfs has --ptrace, or --unwind none");
	if (r->unwind_bytes)
		return cli_usage(c, "--unwind-memory is of tables for BPF: --mode procfs has none");
	return CLI_OK;
}

/* What is wrong with the options together; CLI_OK when nothing is. */
static int check_opts(const struct cli *c, struct recargs *o)
{
	struct offcpu_opts *b = &o->rec.bpf;
	bool some = o->rec.n_pids || o->rec.n_tids || o->rec.n_comms || o->command;

	if (o->rec.cgroup && o->rec.container)
		return cli_usage(c, "--cgroup and --container exclude one another");
	/* alone, they are every process in there */
	b->use_cgroup = o->rec.cgroup || o->rec.container;
	b->all |= b->use_cgroup && !some;
	if (!some && !b->all)
		return cli_usage(c, "what to record? give -p PID, -t TID, -c COMM, -a, --cgroup PATH, "
				    "--container ID, or -- COMMAND");
	if (some && b->all)
		return cli_usage(c, "-a is every process already: drop the other targets");
	if (b->btf_file && (o->rec.mode == RECMODE_BTF || o->rec.mode == RECMODE_PROCFS))
		return cli_usage(c, "--btf goes with mode raw: --mode raw, or auto");
	if (b->kthreads && !b->all)
		return cli_usage(c, "--kthreads goes with -a, or with --cgroup alone");
	if (b->no_kernel_stacks && b->no_user_stacks)
		return cli_usage(c, "-U and -K together leave no stack");
	if (o->no_unwind && b->no_kernel_stacks)
		return cli_usage(c, "-U and --unwind none together leave no stack");
	if (o->no_unwind)
		b->no_user_stacks = true;
	if (b->max_ns && b->min_ns > b->max_ns)
		return cli_usage(c, "--min is longer than --max: no wait can be both");
	b->follow = o->follow < 0 ? o->command != NULL : o->follow;
	b->single = o->rec.n_pids == 1 && !o->rec.n_tids && !o->rec.n_comms && !o->command && !b->follow;
	b->use_tids = o->rec.n_tids > 0;
	b->use_comms = o->rec.n_comms > 0;
	b->use_exec = o->command != NULL;
	o->rec.pids = o->pids;
	o->rec.tids = o->tids;
	o->rec.comms = o->comms;
	if (check_procfs(c, o) != CLI_OK)
		return CLI_USAGE;
	o->rec.hz = o->rec.hz ? o->rec.hz : HZ_DEFAULT;
	return CLI_OK;
}

/* What an option says can be wrong by itself; paths are looked at when they are opened. */
static bool takes_checked(int opt)
{
	return optarg && opt != 'o' && opt != OPT_BTF && opt != OPT_CGROUP && opt != OPT_CONTAINER;
}

/*
 * Parse the command line of C into O, whose lists are O's own, so that it may
 * not be moved afterwards. Returns CLI_OK with *DONE false: go on; else the
 * exit status, with what there is to say said.
 */
static int recargs_parse(const struct cli *c, int argc, char **argv, struct recargs *o, bool *done)
{
	struct err e;
	int opt;

	*o = (struct recargs){ .rec = { .path = "cap.bin", .bpf.depth = 127 }, .follow = -1 };
	*done = true;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+:p:t:c:ao:d:F:UKqvhV", long_opts, NULL)) != -1) {
		if (opt == 'h')
			return cli_help(c);
		if (opt == 'V')
			return cli_version(c);
		if (opt == '?' || opt == ':')
			return cli_bad_option(c, opt, argv);
		if (takes_checked(opt)) {
			if (take_value(opt, optarg, o, &e) != 0)
				return cli_usage(c, "%s", e.msg);
		} else {
			take_flag(opt, optarg, o);
		}
	}
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0)
		return cli_usage(c, "unexpected argument '%s': a command comes after --", argv[optind]);
	o->command = optind < argc ? argv + optind : NULL;
	o->rec.words = (const char *const *)argv;
	o->rec.n_words = (size_t)argc;
	*done = false;
	return check_opts(c, o);
}

/*
 * recording - a recording in whatever mode works here (record/options.h).
 *
 * The calls are those of record/session.h, with the same meaning. In mode auto each
 * is tried in its turn, and the next one only when it is the kernel, or a
 * privilege, that refuses; what was tried is told, and kept in the capture.
 */

struct recording_state {
	uint64_t start_ns, now_ns;
	uint64_t lost;
};

struct recording {
	enum recmode mode;
	struct recorder *rec; /* btf and raw */
	struct procrec *proc; /* procfs */
	char tried[1024];
};

static int open_mode(struct recording *r, struct recorder_opts *o, bool *refused, struct err *e)
{
	o->mode = r->mode;
	o->bpf.raw = r->mode == RECMODE_RAW;
	*refused = false;
	return r->mode == RECMODE_PROCFS ? procrec_open(o, &r->proc, e)
					 : recorder_open(o, &r->rec, refused, e);
}

static void note(struct recording *r, const struct err *e)
{
	size_t len = strlen(r->tried);

	snprintf(r->tried + len, sizeof(r->tried) - len, "%snot %s: %s%s%s", len ? "\n" : "",
		recmode_name(r->mode), e->msg, e->hint[0] ? "; " : "", e->hint);
}

static int climb_down(struct recording *r, struct recorder_opts *o, struct err *e)
{
	struct err why = { 0 };
	bool refused = true;
	int rc = -ENOTSUP;

	for (r->mode = RECMODE_BTF; refused && r->mode < RECMODE_COUNT; r->mode++) {
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

/* Without it no mode tells what a process is. */
static int need_proc(struct err *e)
{
	if (access("/proc/self/stat", R_OK) == 0)
		return 0;
	err_sys(e, -errno, "cannot read '/proc/self/stat'");
	return err_hint(e, "/proc is not mounted: mount -t proc proc /proc");
}

/* OPTS has to live as long as *RET. */
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
	rc = opts->mode == RECMODE_AUTO ? climb_down(r, opts, e) : open_mode(r, opts, &refused, e);
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
	procrec_close(r->proc);
	free(r);
}

static enum recmode recording_mode(const struct recording *r)
{
	return r->mode;
}

/* Why it is this mode, a line for each that did not work, without a newline at the end; "" = nothing to tell.
 */
static const char *recording_tried(const struct recording *r)
{
	return r->tried;
}

static int recording_start(struct recording *r, struct err *e)
{
	return r->proc ? procrec_start(r->proc, e) : recorder_start(r->rec, e);
}

static void recording_hold(struct recording *r, uint32_t pid)
{
	if (r->rec)
		recorder_hold(r->rec, pid);
}

/* The command runs as PID; HELD: it stands at its exec still. */
static int recording_command(struct recording *r, uint32_t pid, bool held, struct err *e)
{
	return r->proc ? procrec_command(r->proc, pid, e) : recorder_command(r->rec, held ? pid : 0, e);
}

static int recording_fd(const struct recording *r)
{
	return r->proc ? -1 : recorder_fd(r->rec);
}

static uint64_t recording_timeout_ns(const struct recording *r)
{
	return r->proc ? procrec_timeout_ns(r->proc) : recorder_timeout_ns(r->rec);
}

static int recording_service(struct recording *r, struct err *e)
{
	return r->proc ? procrec_service(r->proc, e) : recorder_service(r->rec, e);
}

static int recording_stop(struct recording *r, const char *why, struct err *e)
{
	return r->proc ? procrec_stop(r->proc, why, e) : recorder_stop(r->rec, why, e);
}

static void recording_state(struct recording *r, struct recording_state *ret)
{
	struct procrec_stats ps;
	struct recorder_stats st;
	struct counters c;

	if (r->proc) {
		procrec_stats(r->proc, &ps);
		*ret = (struct recording_state){ ps.start_ns, ps.now_ns, ps.lost };
	} else {
		recorder_stats(r->rec, &st);
		recstats_counters(&st, &c);
		*ret = (struct recording_state){ st.start_ns, st.now_ns, counters_lost(&c) };
	}
}

static void recording_progress(struct recording *r, struct buf *b)
{
	struct recorder_stats st;

	if (r->proc) {
		procrec_progress(r->proc, b);
		return;
	}
	recorder_stats(r->rec, &st);
	rectext_progress(b, &st);
}

static void recording_summary(struct recording *r, const struct rectext_told *told, struct buf *b)
{
	struct recorder_stats st;

	if (r->proc) {
		procrec_summary(r->proc, told, b);
		return;
	}
	recorder_stats(r->rec, &st);
	rectext_summary(b, &st, told);
}

static const struct cli cli = {
	.name = "offcpu-record",
	.synopsis = "[-aKUqv] [-p PID]... [-t TID]... [-c COMM]... [-o FILE] [-d TIME] [OPTION]... "
		    "[-- COMMAND [ARG]...]",
	.help = "\n"
		"Record who waited, where and how long, into a capture that symbolize reads.\n"
		"\n"
		"What to record (at least one):\n"
		"  -p, --pid PID        the threads of a process; may be given several times\n"
		"  -t, --tid TID        one thread\n"
		"  -c, --comm COMM      every process of that name, those to come included\n"
		"  -a, --all            every process\n"
		"      --cgroup PATH    only what is in that cgroup or below it\n"
		"      --container ID   only that container: Docker, containerd, Podman, CRI-O\n"
		"  -- COMMAND           start it and record it from its first instruction\n"
		"\n"
		"  -o, --output FILE    the capture (default cap.bin); - is standard output\n"
		"  -d, --duration TIME  stop after 5, 1.5s, 500ms, 2m (default: until Ctrl-C or the\n"
		"                       end of what is recorded)\n"
		"      --follow         children too (default with a command); --no-follow: not\n"
		"      --force          write over a FILE that is no capture\n"
		"\n"
		"Which waits:\n"
		"      --state LETTERS  only those states of ps(1): S, D, T, t, I, P\n"
		"      --min TIME       only waits of at least TIME (10us, 5ms); --max: at most\n"
		"      --preempted      also of threads that stayed runnable but lost the CPU\n"
		"      --kthreads       kernel threads too (with -a)\n"
		"\n"
		"Which stacks:\n"
		"  -U, --user-stacks    user stacks only\n"
		"  -K, --kernel-stacks  kernel stacks only\n"
		"      --depth N        frames of a stack at most (default 127, up to 512)\n"
		"      --unwind HOW     user stacks by dwarf: unwind tables; fp: frame pointers; none;\n"
		"                       auto (default): by tables if the kernel allows it, else fp\n"
		"      --unwind-memory SIZE  of tables in the kernel at most (16M, 1G; default a\n"
		"                       sixteenth of the memory, up to 512M)\n"
		"      --no-symbols     do not store what the frames are called\n"
		"\n"
		"With which privileges:\n"
		"      --mode MODE      btf, raw (no kernel BTF), procfs (no BPF: estimates by samples)\n"
		"                       or auto (default): the first of these that works\n"
		"      --btf FILE       with raw: the kernel's BTF, from a file\n"
		"  -F, --frequency HZ   with procfs: looks a second (default 99, up to 1000)\n"
		"      --ptrace         with procfs: user stacks; stops each thread for a moment\n"
		"\n"
		"  -q, --quiet          no progress and no summary\n"
		"  -v, --verbose        every counter in the summary\n"
		"  -h, --help           this text\n"
		"  -V, --version        the version\n"
		"\n"
		"Status: 0 complete; 1 recorded, but something was lost or could not be written;\n"
		"2 not recorded; 64 bad command line.\n",
};

struct run {
	const struct recargs *o;
	struct recording *rec;
	struct targets targets;
	struct cgroup *in; /* --cgroup, --container; NULL = none */
	struct command command;
	int signal_fd;
	bool tty, line_shown;
	uint64_t shown_ns;
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

/* Why the recording should end now, or NULL. */
static const char *end_reason(struct run *r, uint64_t start_ns, uint64_t now)
{
	struct signalfd_siginfo si;

	while (read(r->signal_fd, &si, sizeof(si)) == sizeof(si))
		if (si.ssi_signo != SIGCHLD)
			return si.ssi_signo == SIGINT    ? "SIGINT"
			       : si.ssi_signo == SIGTERM ? "SIGTERM"
							 : "SIGHUP";
	if (r->o->duration_ns && now - start_ns >= r->o->duration_ns)
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
	uint64_t end = start_ns + r->o->duration_ns, ns = recording_timeout_ns(r->rec);

	if (r->o->duration_ns)
		ns = end <= now ? 0 : MIN(ns, end - now);
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
	struct rectext_told told = { .name = cli.name,
		.path = r->o->rec.path,
		.command = r->o->command ? &r->command : NULL,
		.verbose = r->o->verbose };
	struct buf b = { 0 };

	if (r->o->quiet)
		return;
	recording_summary(r->rec, &told, &b);
	fwrite(b.p, 1, b.len, stderr);
	buf_free(&b);
}

/* Which mode it is, when it is not the best one, and why. */
static void tell_mode(const struct run *r)
{
	char *tried = strdupa(recording_tried(r->rec)), *save;

	if (r->o->quiet || !*tried)
		return;
	for (char *line = strtok_r(tried, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		cli_warn(&cli, "%s", line);
	cli_warn(&cli, "recording in mode %s", recmode_name(recording_mode(r->rec)));
}

static int catch_signals(struct run *r, sigset_t *old, struct err *e)
{
	struct sigaction hup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	/* under nohup(1) a hangup is ignored, and stays so */
	if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, old);
	/* a file size limit is an error of the write, told like a full disk */
	signal(SIGXFSZ, SIG_IGN);
	r->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return r->signal_fd < 0 ? err_sys(e, -errno, "cannot catch signals") : 0;
}

/*
 * The command is held at its exec until the recorder knows its new image. Not
 * without CAP_SYS_PTRACE: a program with the set-user-ID bit would lose it.
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

/* Others' processes are refused at once; by /proc alone the kernel tells of them what it tells everybody. */
static int check_owner(const struct recargs *o, struct err *e)
{
	int rc = o->rec.mode == RECMODE_PROCFS ? 0 : owner_check(o->pids, o->rec.n_pids, e);

	return rc || o->rec.mode == RECMODE_PROCFS ? rc : owner_check(o->tids, o->rec.n_tids, e);
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

/* Up to the first instruction that is recorded. */
static int begin(struct run *r, struct recargs *o, struct err *e)
{
	sigset_t old;
	int rc = catch_signals(r, &old, e);

	if (!rc)
		rc = targets_open(&r->targets, o->pids, o->rec.n_pids, o->tids, o->rec.n_tids, e);
	rc = rc ? rc : check_owner(o, e);
	if (!rc)
		rc = open_cgroup(r, &o->rec, e);
	r->command.hold = caps_have(CAP_SYS_PTRACE);
	if (!rc && o->command)
		rc = command_prepare(&r->command, o->command, &old, e);
	o->rec.command_pid = (uint32_t)r->command.pid;
	if (!rc)
		rc = recording_open(&o->rec, &r->rec, e);
	if (!rc) {
		tell_mode(r);
		rc = recording_start(r->rec, e);
	}
	return !rc && o->command ? start_command(r, o, e) : rc;
}

static int record(struct run *r, struct recargs *o)
{
	struct recording_state st;
	const char *why = NULL;
	struct err e = { 0 };

	if (begin(r, o, &e) != 0) {
		cli_error(&cli, &e);
		return CLI_FAILED;
	}
	if (loop(r, &why, &e) != 0 || recording_stop(r->rec, why, &e) != 0) {
		clear_line(r);
		cli_error(&cli, &e);
		summary(r);
		return CLI_INCOMPLETE;
	}
	recording_state(r->rec, &st);
	summary(r);
	return st.lost ? CLI_INCOMPLETE : CLI_OK;
}

int main(int argc, char **argv)
{
	struct recargs o;
	struct run r = {
		.o = &o, .signal_fd = -1, .tty = isatty(STDERR_FILENO), .command = { .start_fd = -1 }
	};
	struct owner owner;
	struct err e;
	bool done;
	int status = recargs_parse(&cli, argc, argv, &o, &done);

	if (done || status != CLI_OK)
		return status;
	if (owner_become(&owner, &e) != 0) {
		cli_error(&cli, &e);
		return CLI_FAILED;
	}
	o.rec.bpf.owner_only = owner.only;
	o.rec.bpf.owner_uid = owner.uid;
	o.rec.bpf.owner_gid = owner.gid;
	o.rec.hide_kernel = owner.no_kernel;
	status = record(&r, &o);
	command_close(&r.command);
	recording_close(r.rec);
	targets_close(&r.targets);
	cgroup_close(r.in);
	return status;
}
