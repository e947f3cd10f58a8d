/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/recargs.h"
#include "offcpu_abi.h"
#include "system/targets.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

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

int recargs_parse(const struct cli *c, int argc, char **argv, struct recargs *o, bool *done)
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
