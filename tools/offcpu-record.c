/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * offcpu-record - record who waited, where and how long.
 */
#include "base/cli.h"
#include "base/clock.h"
#include "base/text.h"
#include "procfs/recording.h"
#include "record/recargs.h"
#include "system/command.h"
#include "system/container.h"
#include "system/owner.h"
#include "system/privileges.h"
#include "system/targets.h"

#include <errno.h>
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
