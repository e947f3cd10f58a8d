/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * offcpu-record - record who waited, where and how long.
 */
#include "buftext.h"
#include "caps.h"
#include "cli.h"
#include "command.h"
#include "recorder.h"
#include "rectext.h"
#include "targets.h"

#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

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
		"  -q, --quiet          no progress and no summary\n"
		"  -v, --verbose        every counter in the summary\n"
		"  -h, --help           this text\n"
		"  -V, --version        the version\n"
		"\n"
		"Status: 0 complete; 1 recorded, but something was lost or could not be written;\n"
		"2 not recorded; 64 bad command line.\n",
};

#define LIST_MAX 256
#define UNWIND_BYTES_MIN (UINT64_C(1) << 20)
#define UNWIND_BYTES_MAX (UINT64_C(16) << 30)

struct opts {
	struct recorder_opts rec;
	uint32_t pids[LIST_MAX], tids[LIST_MAX];
	const char *comms[LIST_MAX];
	char *const *command; /* NULL = none */
	uint64_t duration_ns; /* 0 = no limit */
	int follow; /* -1 = not said */
	bool no_unwind; /* --unwind none */
	bool quiet, verbose;
};

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
	OPT_NO_SYMBOLS
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
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static int add_id(const char *arg, uint32_t *list, size_t *n, struct err *e)
{
	uint64_t id;
	int rc = *n == LIST_MAX ? err_set(e, -E2BIG, "more than %d targets", LIST_MAX)
				: cli_u64(arg, 1, 4194304, &id, e);

	if (!rc)
		list[(*n)++] = (uint32_t)id;
	return rc;
}

static int add_comm(const char *arg, struct opts *o, struct err *e)
{
	if (!*arg || strlen(arg) >= OFFCPU_COMM_LEN)
		return err_set(e, -EINVAL, "'%s' is no thread name: 1 to %d bytes", arg, OFFCPU_COMM_LEN - 1);
	if (o->rec.n_comms == OFFCPU_COMMS_MAX)
		return err_set(e, -E2BIG, "more than %d names", OFFCPU_COMMS_MAX);
	o->comms[o->rec.n_comms++] = arg;
	return 0;
}

static int set_depth(const char *arg, struct opts *o, struct err *e)
{
	uint64_t depth;
	int rc = cli_u64(arg, 1, OFFCPU_DEPTH_MAX, &depth, e);

	if (!rc)
		o->rec.bpf.depth = (uint32_t)depth;
	return rc;
}

static int set_unwind(const char *arg, struct opts *o, struct err *e)
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
static int take_value(int opt, const char *arg, struct opts *o, struct err *e)
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

static void take_flag(int opt, const char *arg, struct opts *o)
{
	switch (opt) {
	case 'a':
		o->rec.bpf.all = true;
		break;
	case 'o':
		o->rec.path = arg;
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

/* What is wrong with the options together; CLI_OK when nothing is. */
static int check_opts(struct opts *o)
{
	struct offcpu_opts *b = &o->rec.bpf;
	bool some = o->rec.n_pids || o->rec.n_tids || o->rec.n_comms || o->command;

	if (!some && !b->all)
		return cli_usage(&cli, "what to record? give -p PID, -t TID, -c COMM, -a, or -- COMMAND");
	if (some && b->all)
		return cli_usage(&cli, "-a is every process already: drop the other targets");
	if (b->kthreads && !b->all)
		return cli_usage(&cli, "--kthreads goes with -a");
	if (b->no_kernel_stacks && b->no_user_stacks)
		return cli_usage(&cli, "-U and -K together leave no stack");
	if (o->no_unwind && b->no_kernel_stacks)
		return cli_usage(&cli, "-U and --unwind none together leave no stack");
	if (o->no_unwind)
		b->no_user_stacks = true;
	if (b->max_ns && b->min_ns > b->max_ns)
		return cli_usage(&cli, "--min is longer than --max: no wait can be both");
	b->follow = o->follow < 0 ? o->command != NULL : o->follow;
	b->single = o->rec.n_pids == 1 && !o->rec.n_tids && !o->rec.n_comms && !o->command && !b->follow;
	b->use_tids = o->rec.n_tids > 0;
	b->use_comms = o->rec.n_comms > 0;
	b->use_exec = o->command != NULL;
	o->rec.pids = o->pids;
	o->rec.tids = o->tids;
	o->rec.comms = o->comms;
	return CLI_OK;
}

/* CLI_OK: go on; else the exit status, with what there is to say said. */
static int parse(int argc, char **argv, struct opts *o, bool *done)
{
	struct err e;
	int opt;

	*done = true;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+:p:t:c:ao:d:UKqvhV", long_opts, NULL)) != -1) {
		if (opt == 'h')
			return cli_help(&cli);
		if (opt == 'V')
			return cli_version(&cli);
		if (opt == '?' || opt == ':')
			return cli_bad_option(&cli, opt, argv);
		if (optarg && opt != 'o') {
			if (take_value(opt, optarg, o, &e) != 0)
				return cli_usage(&cli, "%s", e.msg);
		} else {
			take_flag(opt, optarg, o);
		}
	}
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0)
		return cli_usage(&cli, "unexpected argument '%s': a command comes after --", argv[optind]);
	o->command = optind < argc ? argv + optind : NULL;
	o->rec.words = (const char *const *)argv;
	o->rec.n_words = (size_t)argc;
	*done = false;
	return check_opts(o);
}

struct run {
	const struct opts *o;
	struct recorder *rec;
	struct targets targets;
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
	struct recorder_stats st;
	struct buf b = { 0 };

	if (!r->tty || r->o->quiet)
		return;
	recorder_stats(r->rec, &st);
	if (st.now_ns - r->shown_ns < 250000000)
		return;
	r->shown_ns = st.now_ns;
	r->line_shown = true;
	buftext_str(&b, "\r\033[K");
	rectext_progress(&b, &st);
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
	return NULL;
}

static struct timespec timeout(const struct run *r, uint64_t start_ns, uint64_t now)
{
	uint64_t end = start_ns + r->o->duration_ns, ns = recorder_timeout_ns(r->rec);

	if (r->o->duration_ns)
		ns = end <= now ? 0 : MIN(ns, end - now);
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
}

static int loop(struct run *r, const char **why, struct err *e)
{
	struct recorder_stats st;
	int rc = 0;

	recorder_stats(r->rec, &st);
	while (!rc && !(*why = end_reason(r, st.start_ns, recorder_now_ns()))) {
		struct pollfd fds[] = { { .fd = recorder_fd(r->rec), .events = POLLIN },
			{ .fd = r->signal_fd, .events = POLLIN },
			{ .fd = targets_fd(&r->targets), .events = POLLIN } };
		struct timespec wait = timeout(r, st.start_ns, recorder_now_ns());

		if (ppoll(fds, ARRAY_LEN(fds), &wait, NULL) < 0 && errno != EINTR)
			return err_sys(e, -errno, "cannot wait");
		rc = recorder_service(r->rec, e);
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
	struct recorder_stats st;
	struct buf b = { 0 };

	if (r->o->quiet)
		return;
	recorder_stats(r->rec, &st);
	rectext_summary(&b, &st, &told);
	fwrite(b.p, 1, b.len, stderr);
	buf_free(&b);
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
static int start_command(struct run *r, const struct opts *o, struct err *e)
{
	uint32_t pid = o->rec.command_pid;
	int rc;

	if (r->command.hold)
		recorder_hold(r->rec, pid);
	rc = command_go(&r->command, o->command[0], e);
	if (!rc)
		rc = recorder_command(r->rec, r->command.held ? pid : 0, e);
	command_release(&r->command);
	return rc;
}

/* Up to the first instruction that is recorded. */
static int begin(struct run *r, struct opts *o, struct err *e)
{
	sigset_t old;
	int rc = catch_signals(r, &old, e);

	if (!rc)
		rc = targets_open(&r->targets, o->pids, o->rec.n_pids, o->tids, o->rec.n_tids, e);
	r->command.hold = caps_have(CAP_SYS_PTRACE);
	if (!rc && o->command)
		rc = command_prepare(&r->command, o->command, &old, e);
	o->rec.command_pid = (uint32_t)r->command.pid;
	if (!rc)
		rc = recorder_open(&o->rec, &r->rec, e);
	if (!rc)
		rc = recorder_start(r->rec, e);
	return !rc && o->command ? start_command(r, o, e) : rc;
}

static int record(struct run *r, struct opts *o)
{
	struct recorder_stats st;
	const char *why = NULL;
	struct err e = { 0 };

	if (begin(r, o, &e) != 0) {
		cli_error(&cli, &e);
		return CLI_FAILED;
	}
	if (loop(r, &why, &e) != 0 || recorder_stop(r->rec, why, &e) != 0) {
		clear_line(r);
		cli_error(&cli, &e);
		summary(r);
		return CLI_INCOMPLETE;
	}
	recorder_stats(r->rec, &st);
	summary(r);
	return st.lost ? CLI_INCOMPLETE : CLI_OK;
}

int main(int argc, char **argv)
{
	struct opts o = { .rec = { .path = "cap.bin", .bpf.depth = 127 }, .follow = -1 };
	struct run r = {
		.o = &o, .signal_fd = -1, .tty = isatty(STDERR_FILENO), .command = { .start_fd = -1 }
	};
	bool done;
	int status = parse(argc, argv, &o, &done);

	if (done || status != CLI_OK)
		return status;
	status = record(&r, &o);
	command_close(&r.command);
	recorder_close(r.rec);
	targets_close(&r.targets);
	return status;
}
