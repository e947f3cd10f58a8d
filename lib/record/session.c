/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/session.h"
#include "base/clock.h"
#include "base/search.h"
#include "base/text.h"
#include "capture/writer.h"
#include "record/bpf.h"
#include "record/host.h"
#include "record/jit.h"
#include "record/names.h"
#include "record/output.h"
#include "record/processes.h"
#include "record/runtimes.h"
#include "record/stacks.h"
#include "record/unwinder.h"
#include "record/wakers.h"
#include "runtime_abi.h"
#include "symbols/kallsyms.h"
#include "system/broker.h"
#include "system/drop.h"
#include "system/interrupt.h"
#include "system/maps.h"
#include "system/privileges.h"
#include "system/proc.h"
#include "system/sandbox.h"
#include "system/targets.h"
#include "system/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

/*
 * session_parts - the parts of a recording, opened in the order that lets it
 * begin soonest.
 *
 * Everything that needs privileges comes first: loading, attaching, opening.
 * Then the process drops its privileges (system/drop.h). Only after that does
 * it read untrusted input, which a traced process can influence: its maps, its
 * files, the kernel's events about it, the unwind tables made from its files.
 * The broker (system/broker.h) opens what has to be opened later.
 */

struct session_parts {
	struct offcpu *bpf;
	struct runtimes
		*runtimes; /* the interpreters that processes run; NULL = not wanted, or not possible */
	struct unwinder *unwinder; /* NULL = user stacks by frame pointer, or none */
	struct procevents *events; /* NULL = not permitted: BPF and /proc are used instead */
	struct process_table *procs;
	struct stack_table *stacks;
	struct cap_writer *out;
	struct worker *broker; /* opens what needs privileges; NULL = no broker */
	uint64_t broker_caps; /* the capabilities that it keeps */
	struct priv_drop dropped; /* what this process has dropped and kept */
	int kallsyms; /* /proc/kallsyms, opened with privileges; -1 = unavailable */
	int epoll_fd; /* readable when a part has something to do */
	/* what else is recorded from the start, in ascending order: with --follow what descends from the
	   targets already, with -c what is named so, with --cgroup what is in it */
	uint32_t *members;
	size_t n_members, max_members;
	uint64_t load_ns; /* how long the programs took to load: see session_parts_patience_ns() */
	bool refused; /* the kernel refused the programs: another mode may work */
	char degraded[512]; /* what does not work, and why; "" = nothing */
};

/*
 * How long a recording waits for the unwind tables of its targets; or so many
 * times the time that loading took.
 */
#define TABLES_NS UINT64_C(5000000000)
#define TABLES_LOADS 50
#define GATHER_MS 20 /* how often process events are gathered meanwhile */

static void session_parts_image(struct session_parts *p, const struct offcpu_ev_image *ev);

static void take_mapping(void *ctx, const struct procevent *ev)
{
	struct session_parts *p = ctx;

	if (p->unwinder)
		unwinder_mapped(p->unwinder, ev);
}

static void parts_take_image(void *ctx, const struct offcpu_ev_image *ev)
{
	session_parts_image(ctx, ev);
}

/* Image EV may have mapped something since it was read. */
static void session_parts_stale(struct session_parts *p, const struct offcpu_ev_image *ev)
{
	if (p->events)
		return;
	/* the unwinder reads the mappings, then calls process_table_stale() if they changed */
	if (ev->type == OFFCPU_EV_MAPPING)
		process_table_mapping(p->procs, ev);
	else
		process_table_stale(p->procs, ev, false);
	if (p->unwinder)
		unwinder_stale(p->unwinder, ev);
}

/* BPF reported an image that has no tables, has just begun or maps something. */
static void session_parts_image(struct session_parts *p, const struct offcpu_ev_image *ev)
{
	if (ev->type == OFFCPU_EV_MAPPING) {
		session_parts_stale(p, ev);
		return;
	}
	if (p->unwinder && ev->type == OFFCPU_EV_FORK)
		unwinder_forked(p->unwinder, ev);
	else if (p->unwinder)
		unwinder_image(p->unwinder, ev);
	if (!p->events)
		process_table_image_seen(p->procs, ev);
}

struct requested {
	struct offcpu_ev_image *ret;
	uint32_t tgid;
	bool found;
};

/* A kernel that cannot restrict the iterator reports all processes. */
static void take_requested(void *ctx, const struct offcpu_ev_image *ev)
{
	struct requested *a = ctx;

	if (ev->tgid != a->tgid)
		return;
	a->found = true;
	*a->ret = *ev;
}

static bool identity_of(void *ctx, uint32_t tgid, struct offcpu_ev_image *ret)
{
	struct session_parts *p = ctx;
	struct requested a = { .ret = ret, .tgid = tgid };
	const struct offcpu_sink sink = { .ctx = &a, .image = take_requested };

	return offcpu_images(p->bpf, tgid, &sink, NULL) == 0 && a.found;
}

/* Note that WHAT does not work, with the message E. The recording continues without it. */
static void session_parts_degrade(struct session_parts *p, const char *what, const struct err *e)
{
	size_t len = strlen(p->degraded);

	snprintf(p->degraded + len, sizeof(p->degraded) - len, "%s%s: %s%s%s", len ? "; " : "", what, e->msg,
		e->hint[0] ? "; " : "", e->hint);
}

static int watch(struct session_parts *p, int fd, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0)
		return err_sys(e, -errno, "cannot wait for the kernel's buffers");
	return 0;
}

static bool is_member(const struct session_parts *p, uint32_t pid)
{
	const size_t i = PARTITION_POINT(0, p->n_members, mid, p->members[mid] < pid);

	return i < p->n_members && p->members[i] == pid;
}

static int ask_targets(struct session_parts *p, const struct recorder_opts *o, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < o->n_pids && !rc; i++)
		rc = offcpu_ask_pid(p->bpf, o->pids[i], e);
	for (size_t i = 0; i < o->n_tids && !rc; i++)
		rc = offcpu_ask_tid(p->bpf, o->tids[i], e);
	for (size_t i = 0; i < o->n_comms && !rc; i++)
		rc = offcpu_ask_comm(p->bpf, o->comms[i], e);
	for (size_t i = 0; i < p->n_members && !rc; i++)
		rc = offcpu_ask_pid(p->bpf, p->members[i], e);
	if (!rc && o->command_pid)
		rc = offcpu_ask_exec(p->bpf, o->command_pid, e);
	return rc;
}

#define FAMILY_ROUNDS 8

/* May any process become a target, by its name or by entering the cgroup, and does BPF say which ones are? */
static bool can_join(const struct recorder_opts *o)
{
	return !o->bpf.raw && (o->n_comms || (o->bpf.all && o->bpf.use_cgroup));
}

/* False if it was one already, or there is no memory. */
static bool add_member(struct session_parts *p, uint32_t pid)
{
	const size_t at = PARTITION_POINT(0, p->n_members, mid, p->members[mid] < pid);

	if (is_member(p, pid) ||
		base_grow(&p->members, &p->max_members, p->n_members + 1, sizeof(*p->members)) != 0)
		return false;
	memmove(&p->members[at + 1], &p->members[at], (p->n_members - at) * sizeof(*p->members));
	p->members[at] = pid;
	p->n_members++;
	return true;
}

/* As targets_descendants(); *NEW: some of them were not members before. Those become targets. */
static int add_family(struct session_parts *p, const struct targets_roots *roots, bool *new, struct err *e)
{
	uint32_t *all = NULL;
	size_t n = 0;
	int rc = targets_descendants(roots, &all, &n, e);

	*new = false;
	for (size_t i = 0; i < n && !rc; i++) {
		if (!add_member(p, all[i]))
			continue;
		*new = true;
		rc = p->bpf ? offcpu_ask_pid(p->bpf, all[i], e) : 0;
	}
	free(all);
	return rc;
}

/*
 * Find the processes that descend from the targets already. After offcpu_attach()
 * mode btf follows the forks of each of them, found or not (is_followed() in
 * bpf/offcpu_targets.bpf.h). Mode raw does so once it is a target: there, repeat
 * this until nothing new is found, or as long as more are made in each round.
 */
static void find_family(struct session_parts *p, const struct recorder_opts *o)
{
	const struct targets_roots roots = { o->pids, o->tids, o->n_pids, o->n_tids, o->comms, o->n_comms };
	int rounds = p->bpf && o->bpf.raw ? FAMILY_ROUNDS : 1, rc;
	bool new = true;
	struct err why;

	if (!o->bpf.follow || !(o->n_pids || o->n_tids || o->n_comms))
		return;
	rc = p->bpf ? offcpu_mark(p->bpf, &why) : 0;
	for (int i = 0; i < rounds && new && !rc; i++)
		rc = add_family(p, &roots, &new, &why);
	if (!rc && p->bpf)
		rc = offcpu_mark(p->bpf, &why);
	if (rc)
		session_parts_degrade(p, "not all children that ran already are recorded", &why);
}

/* Watch the targets and p->members. *NEW: there were threads that were not watched before. */
static int watch_targets(struct session_parts *p, const struct recorder_opts *o, bool *new, struct err *e)
{
	struct procinfo_status st;
	bool more = false;
	int rc = 0;

	*new = false;
	for (size_t i = 0; i < o->n_pids && !rc; i++, *new |= more)
		rc = procevents_add(p->events, o->pids[i], &more, e);
	for (size_t i = 0; i < o->n_tids && !rc; i++, *new |= more)
		if (procinfo_status(o->tids[i], &st))
			rc = procevents_add(p->events, st.tgid, &more, e);
	for (size_t i = 0; i < p->n_members && !rc; i++, *new |= more)
		rc = procevents_add(p->events, p->members[i], &more, e);
	if (!rc && o->command_pid)
		rc = procevents_add(p->events, o->command_pid, &more, e);
	*new |= more;
	return rc;
}

static void take_member(void *ctx, const struct offcpu_ev_image *ev)
{
	if (ev->is_target)
		add_member(ctx, ev->tgid);
}

/* Find the processes that are recorded for their name or for the cgroup that they are in, by BPF. */
static int find_joined(struct session_parts *p, const struct recorder_opts *o, struct err *e)
{
	const struct offcpu_sink sink = { .ctx = p, .image = take_member };
	int rc;

	if (!can_join(o))
		return 0;
	rc = offcpu_mark(p->bpf, e);
	return rc ? rc : offcpu_images(p->bpf, 0, &sink, e);
}

/*
 * Find and watch what is recorded already: what a watched process starts from then
 * on inherits its events, so repeat that until nothing new is found. If nothing is
 * recorded yet, the first process that will be may end before it could be watched:
 * then it is the whole machine at once.
 */
static void watch_members(struct session_parts *p, const struct recorder_opts *o)
{
	bool new = true;
	struct err why;
	int rc;

	find_family(p, o);
	rc = find_joined(p, o, &why);
	for (int i = 0; i < FAMILY_ROUNDS && new && !rc && p->events && !procevents_of_all(p->events); i++) {
		rc = watch_targets(p, o, &new, &why);
		if (!rc && new) {
			find_family(p, o);
			rc = find_joined(p, o, &why);
		}
	}
	if (!rc && p->events && procevents_of_none(p->events))
		rc = procevents_widen(p->events, &why);
	if (rc)
		session_parts_degrade(p, "not all that the targets map is followed", &why);
}

/* A target that has exited is an error. One whose maps may not be read is recorded without them. */
static int scan_target(struct session_parts *p, uint32_t pid, struct err *e)
{
	struct err why;
	int rc = process_table_scan(p->procs, pid, now_ns(), &why);

	if (!rc && p->unwinder)
		unwinder_prepare(p->unwinder, pid);
	if (rc == -ESRCH)
		return err_set(e, rc, "process %u has exited meanwhile", pid);
	if (rc)
		session_parts_degrade(p, "user frames have no names", &why);
	return 0;
}

/* Read the maps of the targets before the first wait can be recorded. */
static int scan_targets(struct session_parts *p, const struct recorder_opts *o, struct err *e)
{
	struct procinfo_status st;
	int rc = 0;

	for (size_t i = 0; i < o->n_pids && !rc; i++)
		rc = scan_target(p, o->pids[i], e);
	for (size_t i = 0; i < o->n_tids && !rc; i++)
		rc = procinfo_status(o->tids[i], &st) ? scan_target(p, st.tgid, e) : 0;
	/* some may have ended meanwhile */
	for (size_t i = 0; i < p->n_members && !rc; i++)
		scan_target(p, p->members[i], NULL);
	/* nearly every command maps this file once it runs: have its table ready before */
	if (!rc && o->command_pid && p->unwinder)
		unwinder_expect(p->unwinder, (const void *)(uintptr_t)malloc);
	/*
	 * track the command: until its exec it is a copy of this process, with
	 * privileges, whose maps can no longer be read; without events, nothing
	 * would end that image
	 */
	if (!rc && o->command_pid && p->events)
		process_table_scan(p->procs, o->command_pid, now_ns(), NULL);
	return rc;
}

/* LEAST_NS or, on a slow machine, TIMES the time that loading the programs took (0.2 s on a fast one). */
static uint64_t session_parts_patience_ns(
	const struct session_parts *p, uint64_t least_ns, unsigned int times)
{
	return MAX(least_ns, p->load_ns * times);
}

/* Nothing drains the process events meanwhile. */
static void await_tables(struct session_parts *p)
{
	uint64_t end_ns = now_ns() + session_parts_patience_ns(p, TABLES_NS, TABLES_LOADS);
	struct unwinder_stats st;

	do {
		unwinder_service(p->unwinder, GATHER_MS);
		if (p->events)
			procevents_gather(p->events);
		unwinder_stats(p->unwinder, &st);
	} while (st.tables.pending && now_ns() < end_ns && !interrupt_pending());
}

/*
 * Publish the mappings and tables of the current image of process PID, which
 * began after session_parts_open(). Waits up to five seconds for the tables,
 * longer on a slow machine. There must be an unwinder.
 */
static int session_parts_publish(struct session_parts *p, uint32_t pid, struct err *e)
{
	const struct offcpu_sink sink = { .ctx = p, .image = parts_take_image };
	int rc = offcpu_images(p->bpf, pid, &sink, e);

	await_tables(p);
	return rc;
}

/* Exclude the recorder's own processes from the recording. */
static void session_parts_exclude(struct session_parts *p)
{
	const struct offcpu_own own = { .worker = p->unwinder ? unwinder_worker(p->unwinder) : 0,
		.broker = worker_pid(p->broker),
		.store = p->unwinder ? unwinder_store(p->unwinder) : 0 };

	offcpu_exclude(p->bpf, &own);
}

static void publish_member(void *ctx, const struct offcpu_ev_image *ev)
{
	struct session_parts *p = ctx;

	if (is_member(p, ev->tgid))
		session_parts_image(p, ev);
}

/* One pass over all processes, where that is possible: before Linux 6.1 each of the others is one too. */
static int publish_members(struct session_parts *p, const struct recorder_opts *o, struct err *e)
{
	const struct offcpu_sink sink = { .ctx = p, .image = publish_member };
	int rc = 0;

	if (p->n_members && !o->bpf.raw)
		return offcpu_images(p->bpf, 0, &sink, e);
	for (size_t i = 0; i < p->n_members && !rc; i++)
		rc = offcpu_images(p->bpf, p->members[i], &sink, e);
	return rc;
}

/*
 * Publish the images of the targets, and wait for the tables that were
 * requested when their maps were read.
 */
static int publish_targets(struct session_parts *p, const struct recorder_opts *o, struct err *e)
{
	const struct offcpu_sink sink = { .ctx = p, .image = parts_take_image };
	struct procinfo_status st;
	int rc = 0;

	session_parts_exclude(p);
	if (!p->unwinder)
		return 0;
	for (size_t i = 0; i < o->n_pids && !rc; i++)
		rc = offcpu_images(p->bpf, o->pids[i], &sink, e);
	for (size_t i = 0; i < o->n_tids && !rc; i++)
		if (procinfo_status(o->tids[i], &st))
			rc = offcpu_images(p->bpf, st.tgid, &sink, e);
	rc = rc ? rc : publish_members(p, o, e);
	await_tables(p);
	return rc;
}

/* Call it first: it forks a process that must inherit nothing. */
static void open_broker(struct session_parts *p, const struct recorder_opts *o)
{
	const struct broker_opts opts = { .owner_only = o->bpf.owner_only, .events = can_join(o) };
	struct err why;

	p->broker_caps = broker_caps(&opts);
	if (broker_start(&opts, &p->broker, &why) != 0)
		session_parts_degrade(p, "what other users' processes map is not opened", &why);
}

/* Call it before anything is opened, because it forks too. */
static int open_unwinder(struct session_parts *p, const struct recorder_opts *o, struct err *e)
{
	struct tableset_opts opts = { .bytes = o->unwind_bytes,
		.all = o->bpf.all || o->n_comms,
		.raw = o->bpf.raw,
		.broker = p->broker };
	struct err why;
	int rc = 0;

	if (o->bpf.no_user_stacks || o->unwind == RECORDER_UNWIND_FP)
		return 0;
	if (!o->bpf.raw && !(o->runtimes && strcmp(o->runtimes, "none") == 0))
		rc = runtimes_new(o->runtimes, &p->runtimes, e);
	if (rc)
		return rc;
	opts.runtimes = p->runtimes;
	rc = unwinder_open(&opts, &p->unwinder, &why);
	if (rc && o->unwind == RECORDER_UNWIND_DWARF) {
		if (e)
			*e = why;
		return rc;
	}
	if (rc)
		session_parts_degrade(p, "user stacks by frame pointer", &why);
	return 0;
}

static void add_limits(struct session_parts *p, bool raw)
{
	struct err limits = { 0 };

	snprintf(limits.msg, sizeof(limits.msg), "%s", offcpu_limits(p->bpf));
	if (limits.msg[0])
		session_parts_degrade(p, raw ? "without BTF" : "this kernel", &limits);
}

/* Those of the programs that run now. */
static uint32_t runtimes_of_all(void)
{
	DIR *proc = opendir("/proc");
	uint32_t found = 0;
	struct dirent *d;

	while (proc && (d = readdir(proc))) {
		char link[sizeof("/proc//exe") + NAME_MAX], path[PATH_MAX];
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/%s/exe", d->d_name);
		n = readlink(link, path, sizeof(path) - 1);
		if (n <= 0)
			continue;
		path[n] = '\0';
		found |= runtimes_of_name(path);
	}
	if (proc)
		closedir(proc);
	return found;
}

/*
 * The runtimes whose functions are looked for, as a bit set. The verifier takes 0.05 s for each, so they are
 * chosen by what the targets map (NAMED), as far as these are known; and, where others may follow, Python and
 * Java in any case.
 */
static uint32_t watched(const struct session_parts *p, const struct recorder_opts *o, uint32_t *named)
{
	uint32_t wanted = runtimes_wanted(p->runtimes), found;
	bool unknown = false;

	found = runtimes_mapped(o->pids, o->n_pids, &unknown) |
		runtimes_mapped(o->tids, o->n_tids, &unknown) |
		runtimes_mapped(p->members, p->n_members, &(bool){ false });
	*named = found &= wanted;
	if (unknown || (o->runtimes && strcmp(o->runtimes, "auto") != 0))
		return wanted;
	if (o->bpf.follow || o->command_pid)
		for (size_t i = 0; i < o->n_words; i++)
			found |= runtimes_of_name(o->words[i]);
	if (o->bpf.all || o->n_comms || o->in)
		found |= runtimes_of_all();
	if (o->bpf.all || o->n_comms || o->in || o->bpf.follow || o->command_pid)
		found |= 1U << RUNTIME_PYTHON | 1U << RUNTIME_JAVA;
	return found & wanted;
}

/* With --unwind auto, fall back to frame pointers if the kernel refuses the walk by tables. */
static int load(struct session_parts *p, const struct recorder_opts *o, struct err *e)
{
	struct offcpu_opts opts = o->bpf;
	struct unwindspace_fds tables;
	uint32_t named = 0;
	struct err why;
	int rc;

	opts.broker = p->broker;
	opts.no_events = !p->events;
	opts.btf_file = opts.raw ? opts.btf_file : NULL;
	if (p->unwinder) {
		unwinder_fds(p->unwinder, &tables);
		opts.tables = &tables;
		opts.scripts = p->runtimes ? watched(p, o, &named) : 0;
	}
	rc = offcpu_load(&opts, &p->bpf, &why);
	if (rc && p->unwinder && o->unwind != RECORDER_UNWIND_DWARF) {
		session_parts_degrade(p, "user stacks by frame pointer", &why);
		opts.tables = NULL;
		rc = offcpu_load(&opts, &p->bpf, &why);
		unwinder_close(p->unwinder);
		p->unwinder = NULL;
	}
	if (!rc && p->runtimes)
		runtimes_watched(p->runtimes, opts.scripts, named, offcpu_scripts_partial(p->bpf));
	p->refused = rc != 0;
	if (rc && e)
		*e = why;
	if (!rc)
		add_limits(p, opts.raw);
	return rc;
}

/* Open what needs privileges. */
static void open_files(struct session_parts *p)
{
	struct err why;

	worker_hurry();
	p->kallsyms = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	if (worker_ready(p->broker, &why) != 0)
		session_parts_degrade(p, "what other users' processes map is not opened", &why);
}

/*
 * Drop all privileges but CAP_BPF and CAP_PERFMON if this kernel requires them
 * later. The broker keeps its own.
 */
static int drop(struct session_parts *p, struct err *e)
{
	const struct priv_drop_recorder_opts opts = {
		.keep = offcpu_needs_caps(p->bpf) ? priv_bits((const int[]){ CAP_BPF, CAP_PERFMON }, 2) : 0
	};

	worker_first_without_memory();
	return priv_drop_recorder(&opts, &p->dropped, e);
}

/*
 * Events of the targets alone, so that others pay nothing: watch_members(). Of the whole
 * machine if any process is one or may wake one. Where others may become targets (can_join()),
 * it is the whole machine from the first one that does: see await_joined().
 */
static int open_events(struct session_parts *p, const struct recorder_opts *o, struct err *e)
{
	const struct procevents_opts opts = { .prompt = p->unwinder != NULL,
		.some = !o->bpf.wakers && (can_join(o) || !(o->bpf.all || o->n_comms)),
		.children = o->bpf.follow || can_join(o) };

	return procevents_open(&opts, &p->events, e);
}

static int open_tables(struct session_parts *p, const struct recorder_opts *o, struct err *e)
{
	bool all = o->bpf.all || o->n_comms;
	struct err why;
	int rc = stack_table_new(o->bpf.depth, &p->stacks, e);

	if (!rc)
		stack_table_runtimes(p->stacks, p->runtimes);
	if (!rc && o->mask_kernel)
		rc = stack_table_mask(p->stacks, e);
	if (!rc)
		rc = process_table_new(all, o->bpf.follow, &p->procs, e);
	if (!rc)
		process_table_broker(p->procs, p->broker);
	if (!rc && open_events(p, o, &why) != 0) {
		session_parts_degrade(p,
			"processes are followed by /proc alone, which misses what one maps shortly before "
			"its end, and renames",
			&why);
		process_table_without_events(p->procs, identity_of, p);
		if (p->unwinder)
			unwinder_without_events(p->unwinder, p->procs);
	}
	if (!rc && p->events)
		rc = watch(p, procevents_fd(p->events), e);
	if (!rc && p->events && p->unwinder)
		procevents_at_once(p->events, take_mapping, p);
	return rc;
}

static int open_by_broker(void *ctx, const struct procevent_how *how, int32_t tid, uint32_t cpu)
{
	return broker_event(ctx, how, tid, cpu);
}

/* Do everything that needs privileges, then drop them. */
static int use_privileges(
	struct session_parts *p, const struct recorder_opts *o, struct output *out, struct err *e)
{
	uint64_t began_ns;
	int rc;

	open_broker(p, o);
	rc = open_unwinder(p, o, e);
	if (!rc)
		rc = open_tables(p, o, e);
	find_family(p, o);
	began_ns = now_ns();
	if (!rc)
		rc = load(p, o, e);
	p->load_ns = now_ns() - began_ns;
	if (!rc && p->unwinder)
		stack_table_marked(p->stacks);
	if (!rc)
		rc = watch(p, offcpu_fd(p->bpf), e);
	if (!rc)
		rc = ask_targets(p, o, e);
	if (!rc) {
		rc = offcpu_attach(p->bpf, e);
		p->refused = rc != 0;
	}
	if (rc)
		return rc;
	watch_members(p, o);
	if (p->events && !procevents_of_all(p->events))
		process_table_of_some(p->procs, true);
	open_files(p);
	rc = output_early(out, o->keep_ns || o->max_bytes, e);
	if (!rc)
		rc = drop(p, e);
	if (!rc && p->events)
		procevents_open_by(p->events, open_by_broker, p->broker);
	return rc;
}

/* Without knowing the code of interrupts, a wake-up by one would be taken for one by the thread it
 * interrupted. */
static int find_interrupts(struct session_parts *p, struct err *e)
{
	struct kallsyms_loader loading = { 0 };
	struct kallsyms *ks = NULL;
	uint64_t start, end;
	int rc;

	kallsyms_loader_begin(&loading, p->kallsyms);
	rc = kallsyms_loader_take(&loading, &ks, e);
	if (rc) {
		err_prefix(e, "cannot record wakers");
		return rc;
	}
	start = kallsyms_address(ks, "asm_common_interrupt");
	end = kallsyms_address(ks, "__irqentry_text_end");
	kallsyms_free(ks);
	if (!start || end <= start) {
		err_set(e, -ENOTSUP,
			"cannot record wakers: this kernel does not say where interrupts enter it");
		err_hint(e, "Linux on x86-64 does, since 5.8");
		return -ENOTSUP;
	}
	offcpu_interrupts(p->bpf, start, end);
	return 0;
}

#define FILES_NEEDED 1024

/* Do the rest, without privileges, and create the output. */
static int get_ready(
	struct session_parts *p, const struct recorder_opts *o, struct output *out, struct err *e)
{
	const enum record_mode mode = o->bpf.raw ? RECORD_MODE_RAW : RECORD_MODE_BTF;
	/* not before: nothing drains the events while the programs are loaded */
	int rc = p->events ? procevents_start(p->events, e) : 0, fd, ring;
	const bool rings = o->keep_ns || o->max_bytes;

	if (!rc && o->misfits[mode]) {
		rc = err_set(e, -ECANCELED, "%s means nothing in mode %s, which works here", o->misfits[mode],
			record_mode_name(mode));
		err_hint(e, "leave it out, or request the mode that has it with --mode");
	}
	if (!rc && o->bpf.wakers)
		rc = find_interrupts(p, e);
	/* those that were forked before the events began */
	find_family(p, o);
	if (!rc)
		rc = scan_targets(p, o, e);
	if (!rc)
		rc = publish_targets(p, o, e);
	if (!rc && p->unwinder)
		rc = watch(p, unwinder_fd(p->unwinder), e);
	if (rc)
		return rc;
	fd = output_take(out, rings ? &ring : NULL, e);
	rc = fd < 0 ? fd : cap_writer_begin(fd, o->path, &p->out, e);
	if (!rc && rings)
		cap_writer_ring(p->out, ring, o->keep_ns ? o->keep_ns : UINT64_MAX, o->max_bytes);
	else if (fd >= 0 && rings)
		close(ring);
	return rc;
}

/* The soft limit is as high as the hard one: tools/offcpu-record.c. */
static void limit_hint(struct err *e)
{
	struct rlimit files;

	if (e && getrlimit(RLIMIT_NOFILE, &files) == 0) {
		e->hint[0] = '\0';
		err_hint(e, "no more than %llu files may be open (hard limit): ulimit -Hn %d, as root",
			(unsigned long long)files.rlim_cur, FILES_NEEDED);
	}
}

/*
 * Load and attach the programs for O, read the maps of the targets and wait for
 * their tables. The output is created last (record/output.h): a recording that
 * cannot begin neither leaves nor replaces a file. Privileges are dropped for
 * good once everything is attached, even if a later step fails. Call
 * session_parts_close() even on failure. The error message names the failed
 * step and the remedy.
 */
static int session_parts_open(struct session_parts *p, const struct recorder_opts *o, struct err *e)
{
	struct output out;
	int rc;

	*p = (struct session_parts){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC), .kallsyms = -1 };
	if (p->epoll_fd < 0)
		return err_sys(e, -errno, "cannot create an epoll instance");
	output_start(&out, o->path, o->force);
	rc = use_privileges(p, o, &out, e);
	if (rc == -EMFILE) {
		p->refused = true; /* the other modes take fewer */
		limit_hint(e);
	}
	if (!rc)
		rc = get_ready(p, o, &out, e);
	output_close(&out);
	return rc;
}

/* One line: what was dropped, what is kept, and what confines the processes that read files. */
static void session_parts_put_privileges(const struct session_parts *p, struct buf *b)
{
	priv_drop_put(&p->dropped, b);
	if (worker_pid(p->broker))
		priv_drop_put_child("the process that opens files", p->broker_caps, b);
	buftext_str(b, "; ");
	sandbox_put(b);
}

static void session_parts_close(struct session_parts *p)
{
	offcpu_close(p->bpf);
	unwinder_close(p->unwinder);
	runtimes_free(p->runtimes);
	procevents_close(p->events);
	process_table_free(p->procs);
	stack_table_free(p->stacks);
	cap_writer_close(p->out);
	worker_free(p->broker);
	free(p->members);
	if (p->kallsyms >= 0)
		close(p->kallsyms);
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
}

#define FLUSH_NS UINT64_C(1000000000)
#define TICK_MS 100
/* A program that is executed and maps its libraries is no flood yet: its events are read one by one. */
#define FLOOD_SERVICES 200
#define FLOOD_NS 500000 /* how often the events of a flood are read */
#define SWAP_POLL_NS 1000000
#define PIPE_POLL_NS 50000000 /* how often a pipe that was full is tried again */
#define SCAN_NS 1000000 /* budget for each scan of processes in recorder_service() */

/* Each is a time, or so many times the time that loading took: see session_parts_patience_ns(). */
#define LAST_TABLES_NS UINT64_C(50000000) /* how long to wait, at the end, for tables of the last waits */
#define LAST_TABLES_LOADS 4
#define LATE_NS UINT64_C(2000000000) /* how long a snapshot waits for tables */
#define LATE_LOADS 10
#define NAMES_NS UINT64_C(2000000000) /* how long to wait, at the end, for names */
#define NAMES_LOADS 10
#define OPEN_NS UINT64_C(4000000000) /* and for files that are to be opened */
#define OPEN_LOADS 20
#define ROWS_MAX ((size_t)1 << 17) /* flush before there are more */
#define FORGET_MIN 65536 /* stacks and wakers: fewer are not forgotten */
#define FRAMES_KEPT                                                                                          \
	(UINT64_C(64) << 20) /* bytes of stacks to keep: other processes, or waits, have them too */
#define REWALK_SHARE 10 /* walking waits in progress again takes at most a tenth of the time */

/* A sample. It is written once the process events of its time have been processed. */
struct row {
	struct offcpu_key key;
	struct offcpu_value value;
};

/* A process that is recorded and had no image yet. */
struct joined {
	uint32_t tgid;
	uint64_t began_ns, due_ns;
};

struct recorder {
	struct session_parts p;
	struct waker_table *wakers; /* NULL = not recorded */
	struct late_stacks *snaps; /* stacks that are walked later; NULL = no unwinder */
	uint64_t settled_ns; /* process events up to this time have been processed */
	struct joined *joined; /* in order of time: await_joined() */
	size_t n_joined, max_joined;
	bool scanning; /* the scan of the processes from before the recording is not complete */
	bool swapping; /* the aggregation map is being swapped, */
	bool flushing; /* and a flush follows */
	bool reswapped; /* it was swapped without a flush since the last one: rows may have the same key */
	/* stacks and wakers are forgotten in three steps: an epoch begins; what threads refer to is held;
	   after the flush that follows, the others go */
	enum { REMEMBERS, TURNED, HELD } forgetting;
	uint64_t turned_ns; /* when the epoch began */
	size_t forget_at; /* stacks and wakers */
	bool release; /* at the next flush, write what is kept into the capture */
	unsigned int burst; /* calls of recorder_service() in a row that left young process events */
	bool rewalk; /* waits in progress lacked tables that are available now */
	uint64_t rewalk_due_ns; /* no earlier than this */
	uint64_t quiet_ns; /* when unwinder_quiet() was last called */
	struct kallsyms *ks;
	struct kallsyms_loader loading; /* loads the next ones */
	bool symbols_refused; /* the error was reported */
	struct row *rows;
	size_t n_rows, max_rows;
	uint64_t rows_lost, rows_lost_ns, samples_lost; /* waits, and samples, lost for lack of memory */
	uint64_t wakers_known, wakers_missing; /* waits that ended, with their waker and without */
	uint64_t start_ns, stop_ns, next_flush_ns, symbols_ns;
	uint64_t foresee_ns; /* no earlier than this: foresee_names() */
	struct {
		uint32_t every; /* of waits at one place, one has stacks of its own; 0 = not chosen yet */
		uint64_t spent_ns, time_ns; /* at the last choice */
		int cpus;
	} overhead;
	const struct recorder_opts *opts;
	uint64_t children; /* of the targets, not recorded */
	bool all;
	bool mask; /* kernel addresses */
	bool ptrace; /* it began with CAP_SYS_PTRACE */
	struct name_requests *names; /* NULL = none are stored */
	struct jit_store *jit; /* the same for JIT code; NULL = none */
	struct name_store *namer; /* stores the names */
	struct cap_outcomes user, cpu;
	char privileges[512];
	bool broker_missed; /* its end was reported */
	struct offcpu_sink sink;
};

static void take_stack(void *ctx, const struct offcpu_ev_stack *ev)
{
	struct recorder *r = ctx;

	stack_table_add(r->p.stacks, ev);
}

static void take_waker(void *ctx, const struct offcpu_ev_waker *ev)
{
	struct recorder *r = ctx;

	waker_table_add(r->wakers, ev);
}

static void take_code(void *ctx, const struct offcpu_ev_code *ev, size_t len)
{
	struct recorder *r = ctx;

	runtimes_code(r->p.runtimes, ev, len);
}

static void take_method(void *ctx, const struct offcpu_ev_method *ev, size_t len)
{
	struct recorder *r = ctx;

	runtimes_method(r->p.runtimes, ev, len);
}

static void take_inlined(void *ctx, const struct offcpu_ev_inlined *ev, size_t len)
{
	struct recorder *r = ctx;

	runtimes_inlined(r->p.runtimes, ev, len);
}

static void take_thread(void *ctx, const struct offcpu_ev_thread *ev)
{
	struct recorder *r = ctx;

	process_table_announce(r->p.procs, ev);
}

/* A process goes on without its events: take those of the whole machine, then read what it has mapped. */
static void watch_all(struct recorder *r)
{
	struct session_parts *p = &r->p;
	struct err why;

	if (procevents_widen(p->events, &why) != 0)
		session_parts_degrade(p, "not all that the targets map is followed", &why);
	process_table_of_some(p->procs, false);
	process_table_freshen(p->procs, UINT64_MAX);
	if (r->all)
		process_table_scan_all(p->procs);
	if (p->unwinder)
		unwinder_distrust(p->unwinder);
}

/*
 * Process TGID has become a target by itself: its events, too, from now on. If it has ended already, or they
 * cannot be had, those of the whole machine: the next one may be as brief.
 */
static void watch_joined(struct recorder *r, uint32_t tgid)
{
	struct session_parts *p = &r->p;
	bool new = false;
	struct err why;

	if (!procevents_of_all(p->events) &&
		(procevents_add(p->events, tgid, &new, &why) != 0 || !new || procevents_of_all(p->events)))
		watch_all(r);
	process_table_scan(p->procs, tgid, now_ns(), NULL);
	if (p->unwinder && new)
		unwinder_distrust(p->unwinder);
}

/*
 * The process of EV is recorded. If its events are not, it has become a target by itself:
 * unless one that is on its way says that a watched process has started it. By then it
 * may have ended, and one that had its ID before it may be known.
 */
static void await_joined(struct recorder *r, const struct offcpu_ev_image *ev)
{
	struct joined j = { .tgid = ev->tgid };
	uint64_t now;

	if (!r->p.events || procevents_of_all(r->p.events))
		return;
	now = now_ns();
	j.began_ns = ev->start_boot_ns - (now_on(CLOCK_BOOTTIME) - now);
	j.due_ns = now + 2 * PROCEVENTS_SETTLE_NS;
	if (process_table_lived(r->p.procs, j.tgid, j.began_ns))
		return;
	if (base_grow(&r->joined, &r->max_joined, r->n_joined + 1, sizeof(*r->joined)) == 0)
		r->joined[r->n_joined++] = j;
	else
		watch_joined(r, j.tgid);
}

static void find_joiners(struct recorder *r, uint64_t now)
{
	size_t n = 0;

	if (!r->n_joined)
		return;
	for (; n < r->n_joined && now >= r->joined[n].due_ns; n++)
		if (!process_table_lived(r->p.procs, r->joined[n].tgid, r->joined[n].began_ns))
			watch_joined(r, r->joined[n].tgid);
	r->n_joined -= n;
	memmove(r->joined, r->joined + n, r->n_joined * sizeof(r->joined[0]));
}

static void take_image(void *ctx, const struct offcpu_ev_image *ev)
{
	struct recorder *r = ctx;

	session_parts_image(&r->p, ev);
	await_joined(r, ev);
}

static void take_snapshot(void *ctx, const struct offcpu_ev_snapshot *ev)
{
	struct recorder *r = ctx;
	const struct offcpu_ev_image image = { .type = OFFCPU_EV_IMAGE,
		.tgid = ev->tgid,
		.start_boot_ns = ev->start_boot_ns,
		.exec_id = ev->exec_id };

	if (!r->snaps)
		return;
	late_stacks_add(r->snaps, ev);
	/* it is running: read it before processes that only wait */
	session_parts_image(&r->p, &image);
	session_parts_stale(&r->p, &image);
}

static void lose_row(struct recorder *r, const struct offcpu_key *key, const struct offcpu_value *value)
{
	if (key->flags & OFFCPU_F_ON_CPU) {
		r->samples_lost += value->count;
		return;
	}
	r->rows_lost += value->count;
	r->rows_lost_ns += value->total_ns;
}

static void take_sample(void *ctx, const struct offcpu_key *key, const struct offcpu_value *value)
{
	struct recorder *r = ctx;

	if (base_grow(&r->rows, &r->max_rows, r->n_rows + 1, sizeof(*r->rows)) != 0) {
		lose_row(r, key, value);
		return;
	}
	r->rows[r->n_rows++] = (struct row){ *key, *value };
}

static void take_life(void *ctx, const struct offcpu_ev_life *ev)
{
	struct recorder *r = ctx;

	process_table_life(r->p.procs, ev);
}

static void hold_stack(void *ctx, unsigned int kind, const struct offcpu_stack_id *id)
{
	struct recorder *r = ctx;

	stack_table_hold(r->p.stacks, kind, id);
}

/* The wait of K is still to end. */
static void want_waiting(void *ctx, const struct offcpu_key *k)
{
	struct recorder *r = ctx;
	struct cap_stack s;

	if ((stack_table_user(r->p.stacks, &k->user, &s) || stack_table_frames(r->p.stacks, &k->user, &s)) &&
		s.frames)
		name_requests_add(
			r->names, process_table_newest_maps(r->p.procs, k->tgid), &s, now_ns(), now_ns());
}

static void hold_waker(void *ctx, const struct offcpu_stack_id *id)
{
	struct recorder *r = ctx;

	waker_table_hold(r->wakers, id);
}

static void take_event(void *ctx, const struct procevent *ev)
{
	struct recorder *r = ctx;

	process_table_event(r->p.procs, ev);
	jit_store_event(r->jit, r->p.procs, ev);
	if (r->p.unwinder)
		unwinder_event(r->p.unwinder, ev);
}

/* SETTLE: keep the newest events for the next call, see system/events.h. */
static void drain_events(struct recorder *r, bool settle)
{
	uint64_t now = now_ns();

	if (!r->p.events)
		return;
	procevents_drain(r->p.events, settle, take_event, r);
	if (process_table_unwatched(r->p.procs) && !procevents_of_all(r->p.events))
		watch_all(r);
	find_joiners(r, now);
	r->settled_ns = settle ? now - PROCEVENTS_SETTLE_NS : now;
}

/* Write the state of the privileges to the capture. The summary shows it too. */
static void write_privileges(struct recorder *r)
{
	struct buf b = { 0 };

	session_parts_put_privileges(&r->p, &b);
	snprintf(r->privileges, sizeof(r->privileges), "%.*s", (int)b.len, b.p ? (const char *)b.p : "");
	buf_free(&b);
	cap_writer_option(r->p.out, &(struct cap_option){ "privileges", r->privileges });
}

static void write_options(struct recorder *r, const struct recorder_opts *o)
{
	record_options_write(r->p.out, o,
		o->bpf.no_user_stacks ? "none"
		: r->p.unwinder       ? "dwarf"
				      : "fp",
		r->p.degraded);
	write_privileges(r);
}

int recorder_open(const struct recorder_opts *opts, struct recorder **ret, bool *refused, struct err *e)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int rc;

	*refused = false;
	if (!r)
		return err_nomem(e, "the recorder");
	r->opts = opts;
	r->all = opts->bpf.all || opts->n_comms;
	r->ptrace = priv_have(CAP_SYS_PTRACE);
	r->sink = (struct offcpu_sink){ .ctx = r,
		.stack = take_stack,
		.waker = opts->bpf.wakers ? take_waker : NULL,
		.thread = take_thread,
		.image = take_image,
		.code = take_code,
		.method = take_method,
		.inlined = take_inlined,
		.snapshot = take_snapshot,
		.sample = take_sample,
		.life = take_life,
		.waiting = want_waiting,
		.held_stack = hold_stack,
		.held_waker = hold_waker };
	r->forget_at = FORGET_MIN;
	/* before session_parts_open(), which creates the file as its last step */
	rc = opts->bpf.wakers ? waker_table_new(&r->wakers, e) : 0;
	rc = rc ? rc : late_stacks_new(opts->bpf.depth ? opts->bpf.depth : 127, &r->snaps, e);
	if (!rc && !opts->no_symbols && !opts->bpf.no_user_stacks) {
		rc = name_requests_new(&r->names, e);
		rc = rc ? rc : jit_store_new(&r->jit, e);
	}
	rc = rc ? rc : session_parts_open(&r->p, opts, e);
	if (!rc)
		jit_store_broker(r->jit, r->p.broker);
	if (!rc && r->names)
		rc = name_store_new(r->names, process_table_files(r->p.procs), r->p.out, &r->namer, e);
	*refused = r->p.refused;
	if (rc) {
		recorder_close(r);
		return rc;
	}
	if (!r->p.unwinder) {
		late_stacks_free(r->snaps);
		r->snaps = NULL;
	}
	r->mask = opts->mask_kernel;
	if (r->names || r->p.unwinder)
		stack_table_keep(r->p.stacks, FRAMES_KEPT);
	write_options(r, opts);
	*ret = r;
	return 0;
}

void recorder_close(struct recorder *r)
{
	if (!r)
		return;
	name_store_free(r->namer);
	session_parts_close(&r->p);
	late_stacks_free(r->snaps);
	waker_table_free(r->wakers);
	jit_store_free(r->jit);
	name_requests_free(r->names);
	kallsyms_loader_close(&r->loading);
	kallsyms_free(r->ks);
	free(r->rows);
	free(r->joined);
	free(r);
}

void recorder_hold(struct recorder *r, uint32_t pid)
{
	offcpu_hold(r->p.bpf, pid);
}

int recorder_command(struct recorder *r, uint32_t pid, struct err *e)
{
	int rc = 0;

	if (r->p.unwinder && pid)
		rc = session_parts_publish(&r->p, pid, e);
	offcpu_hold(r->p.bpf, 0);
	return rc;
}

/* Others map all the time, and a thread whose event wakes this process up pays for that. */
static bool in_flood(const struct recorder *r)
{
	return r->burst > FLOOD_SERVICES;
}

int recorder_fd(const struct recorder *r)
{
	return in_flood(r) ? -1 : r->p.epoll_fd;
}

uint64_t recorder_timeout_ns(const struct recorder *r)
{
	uint64_t now = now_ns(), due = MIN(r->next_flush_ns, now + TICK_MS * UINT64_C(1000000));

	if (r->swapping)
		due = now + SWAP_POLL_NS;
	if (r->scanning)
		due = now;
	if (r->n_joined)
		due = MIN(due, r->joined[0].due_ns);
	if (cap_writer_behind(r->p.out))
		due = MIN(due, now + PIPE_POLL_NS);
	if (r->p.unwinder) {
		due = MIN(due, unwinder_due_ns(r->p.unwinder));
		due = MIN(due, late_stacks_due_ns(r->snaps));
		if (r->rewalk)
			due = MIN(due, r->rewalk_due_ns);
	}
	if (r->burst)
		due = MIN(due, now + (in_flood(r) ? FLOOD_NS : PROCEVENTS_SETTLE_NS));
	return due <= now ? 0 : due - now;
}

/*
 * Read the kernel's symbols while the recording runs, and again (at most every
 * five seconds) when an address has none: a module or a BPF program was loaded.
 */
static void read_symbols(struct recorder *r)
{
	uint64_t now = now_ns();

	if (r->symbols_ns && (!stack_table_wants_symbols(r->p.stacks) || now - r->symbols_ns < 5 * FLUSH_NS))
		return;
	kallsyms_loader_begin(&r->loading, r->p.kallsyms);
	r->symbols_ns = now;
}

/* Call it before kernel stacks are written. */
static void take_symbols(struct recorder *r)
{
	struct kallsyms *ks;
	uint64_t start, end;
	struct err why;
	char text[64];

	if (!r->loading.running)
		return;
	if (kallsyms_loader_take(&r->loading, &ks, &why) == 0) {
		if (!r->ks)
			offcpu_kernel_symbols(r->p.bpf, ks);
		stack_table_symbols(r->p.stacks, ks);
		if (!r->ks && stack_table_scheduler(r->p.stacks, &start, &end)) {
			snprintf(text, sizeof(text), "%" PRIx64 "-%" PRIx64, start, end);
			cap_writer_option(r->p.out, &(struct cap_option){ CAPTURE_OPTION_SCHEDULER, text });
		}
		kallsyms_free(r->ks);
		r->ks = ks;
	} else if (!r->ks && !r->symbols_refused) {
		r->symbols_refused = true;
		session_parts_degrade(&r->p, "kernel frames have no names", &why);
		cap_writer_option(r->p.out, &(struct cap_option){ "kallsyms", why.msg });
	}
}

/* The recording ends at END_NS: no file is waited for much longer. Once it has ended, that is said anew. */
static void limit_broker(struct recorder *r, uint64_t end_ns)
{
	worker_limit(r->p.broker, end_ns + session_parts_patience_ns(&r->p, OPEN_NS, OPEN_LOADS));
}

int recorder_start(struct recorder *r, struct err *e)
{
	int rc = offcpu_start(r->p.bpf, &r->start_ns, e);

	if (rc)
		return rc;
	r->next_flush_ns = r->start_ns + FLUSH_NS;
	if (r->opts->duration_ns != UINT64_MAX)
		limit_broker(r, r->start_ns + r->opts->duration_ns);
	stack_table_schedule(r->p.stacks, offcpu_schedule_address(r->p.bpf));
	/* threads that already wait have requested tables */
	offcpu_drain(r->p.bpf, &r->sink);
	/* those that are not watched may execute another program before they are recorded */
	if (r->all && (!r->p.events || procevents_of_all(r->p.events)))
		process_table_scan_all(r->p.procs);
	/* not before, to begin sooner */
	r->children = record_options_children(r->opts);
	return cap_host_write(r->p.out, r->start_ns, r->p.kallsyms, r->mask, e);
}

/* Walk the stacks that could not be walked at the switch. LAST: do not wait for their tables any longer. */
static void walk_snapshots(struct recorder *r, bool last)
{
	const struct late_stacks_by by = { .procs = r->p.procs,
		.stacks = r->p.stacks,
		.tables = r->p.unwinder ? unwinder_tables(r->p.unwinder) : NULL,
		.settled_ns = r->settled_ns,
		.late_ns = session_parts_patience_ns(&r->p, LATE_NS, LATE_LOADS) };

	if (r->p.unwinder && r->snaps)
		late_stacks_walk(r->snaps, &by, last);
}

/* Where a thread was, as the capture has it. */
struct place {
	uint32_t proc, kstack, ustack; /* CAPTURE_NONE: no memory */
	uint32_t epoch; /* of the mappings, */
	uint32_t number; /* and for samples: CAPTURE_SAMPLE_EPOCH */
	struct stack_table_end end; /* of the user stack */
};

/* Request names for the frames of P, whose process and stack are in the capture. */
static void want_names(struct recorder *r, const struct offcpu_key *k, const struct place *p,
	uint64_t first_ns, uint64_t last_ns)
{
	struct cap_stack stack;

	if (!r->names || !name_requests_is_new(r->names, p->proc, p->ustack, p->epoch))
		return;
	if (stack_table_frames(r->p.stacks, &k->user, &stack))
		name_requests_add(r->names, process_table_maps(r->p.procs, k), &stack, first_ns, last_ns);
	else
		name_requests_miss(r->names, stack.len);
}

/*
 * Many threads wait from the beginning to the end, and only then there is a sample of them: look their names
 * up before, or the end would wait for it. Each time that the recording is half as long again.
 */
static void foresee_names(struct recorder *r)
{
	const uint64_t now = now_ns();

	if (now < r->foresee_ns)
		return;
	r->foresee_ns = now + (now - r->start_ns) / 2;
	offcpu_waiting(r->p.bpf, &r->sink, NULL);
}

static bool same_rule(void *ctx, const struct offcpu_key *key, uint64_t addr, uint64_t at_ns)
{
	const struct recorder *r = ctx;
	const struct late_stacks_by by = {
		.procs = r->p.procs, .tables = unwinder_tables(r->p.unwinder), .settled_ns = r->settled_ns
	};

	return late_stacks_same_rule(&by, key, addr, at_ns);
}

/*
 * BPF walks by the tables of what was mapped when the recorder last looked. A stack that leads through
 * addresses which belonged to another file by then, such as a library that replaced one at the same place,
 * ends there.
 */
static void distrust_stack(struct recorder *r, struct offcpu_key *k, uint64_t first_ns, uint64_t last_ns)
{
	const struct offcpu_stack_id id = k->user;
	struct cap_stack s;
	uint32_t n;

	if (!r->p.unwinder ||
		(!stack_table_user(r->p.stacks, &id, &s) && !stack_table_frames(r->p.stacks, &id, &s)) ||
		!s.frames)
		return;
	n = process_table_trusted(r->p.procs, k, first_ns, last_ns, &s, same_rule, r);
	if (n != UINT32_MAX)
		stack_table_cut(r->p.stacks, &id, n, REASON_NOT_READY, &k->user);
}

/* Write process and stacks of K, which waited, or WAKER: woke, from FIRST_NS to LAST_NS. False if out of
 * memory. */
static bool write_place(struct recorder *r, const struct offcpu_key *key, uint64_t first_ns, uint64_t last_ns,
	bool waker, struct place *p)
{
	struct offcpu_key whole = *key, *k = &whole;

	if (!r->p.events)
		process_table_refresh(r->p.procs, k, last_ns);
	p->proc = process_table_emit(r->p.procs, k, first_ns, waker, r->p.out);
	p->epoch = process_table_epoch(r->p.procs, k, first_ns, last_ns);
	if (p->epoch)
		distrust_stack(r, k, first_ns, last_ns);
	p->number = process_table_number(p->epoch, k->name);
	jit_store_see(r->jit, r->p.procs, r->p.stacks, k, p->proc, first_ns);
	p->kstack = stack_table_emit(r->p.stacks, CAPTURE_STACK_KERNEL, &k->kernel, r->p.out, NULL);
	p->ustack = stack_table_emit(r->p.stacks, CAPTURE_STACK_USER, &k->user, r->p.out, &p->end);
	if (p->proc != CAPTURE_NONE && p->ustack != CAPTURE_NONE)
		want_names(r, k, p, first_ns, last_ns);
	return p->proc != CAPTURE_NONE && p->kstack != CAPTURE_NONE && p->ustack != CAPTURE_NONE;
}

static bool place_waker(void *ctx, const struct offcpu_key *k, uint64_t last_ns, struct cap_waker *w)
{
	struct recorder *r = ctx;
	struct place p = { .proc = CAPTURE_NONE };

	if (k->tid) {
		if (!write_place(r, k, w->first_ns, last_ns, true, &p))
			return false;
	} else {
		p.kstack = stack_table_emit(r->p.stacks, CAPTURE_STACK_KERNEL, &k->kernel, r->p.out, NULL);
		p.ustack = stack_table_emit(r->p.stacks, CAPTURE_STACK_USER, &k->user, r->p.out, NULL);
	}
	w->proc = p.proc;
	w->kstack = p.kstack;
	w->ustack = p.ustack;
	w->flags |= p.number * CAPTURE_SAMPLE_EPOCH;
	return p.kstack != CAPTURE_NONE && p.ustack != CAPTURE_NONE;
}

/* The waker of the waits of K, in the capture; 0 = none is known, or can be. */
static uint32_t write_waker(struct recorder *r, const struct offcpu_key *k, const struct offcpu_value *v)
{
	uint32_t id;

	if (!r->wakers ||
		k->flags & (OFFCPU_F_ON_CPU | OFFCPU_F_OPEN | OFFCPU_F_PREEMPTED | OFFCPU_F_THROTTLED))
		return 0;
	id = waker_table_emit(
		r->wakers, &k->waker, v->first_ns, v->last_ns + v->max_ns, place_waker, r, r->p.out);
	*(id ? &r->wakers_known : &r->wakers_missing) += v->count;
	return id;
}

/* False if its stack is not known yet. */
static bool write_row(struct recorder *r, struct row *row)
{
	struct offcpu_key *k = &row->key;
	const struct offcpu_value *v = &row->value;
	struct place p;
	struct cap_sample s = { .tid = k->tid,
		.state = k->state,
		.flags = k->flags & (CAPTURE_SAMPLE_EPOCH - 1),
		.total_ns = v->total_ns,
		.count = v->count,
		.max_ns = v->max_ns,
		.first_ns = v->first_ns,
		.last_ns = v->last_ns,
		.is_split = v->split == v->count,
		.runnable_ns = v->runnable_ns };

	if (r->snaps && !late_stacks_answer(r->snaps, &k->user))
		return false;
	if (r->wakers && !waker_table_ready(r->wakers, &k->waker, r->snaps))
		return false;
	if (!write_place(r, k, v->first_ns, v->last_ns, false, &p)) {
		lose_row(r, k, v);
		return true;
	}
	cap_outcomes_add(
		s.flags & CAPTURE_SAMPLE_ON_CPU ? &r->cpu : &r->user, p.end.verdict, p.end.reason, v->count);
	s.proc = p.proc;
	s.kstack = p.kstack;
	s.ustack = p.ustack;
	s.flags |= p.number * CAPTURE_SAMPLE_EPOCH;
	s.waker = write_waker(r, k, v);
	if (r->opts->bpf.events && s.count == 1)
		cap_writer_wait(r->p.out, &s);
	else
		cap_writer_sample(r->p.out, &s);
	return true;
}

static int by_key_and_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int c = memcmp(&x->key, &y->key, sizeof(x->key));

	return c ? c : CMP(x->value.first_ns, y->value.first_ns);
}

/* Does no address change its meaning between the waits of A and those of B, which have the same key? */
static bool in_one_epoch(struct recorder *r, const struct row *a, const struct row *b)
{
	if (process_table_emit(r->p.procs, &a->key, a->value.first_ns, false, r->p.out) == CAPTURE_NONE)
		return false;
	return process_table_epoch(r->p.procs, &a->key, a->value.first_ns, a->value.last_ns) ==
	       process_table_epoch(r->p.procs, &b->key, b->value.first_ns, b->value.last_ns);
}

static void add_value(struct offcpu_value *to, const struct offcpu_value *v)
{
	to->total_ns += v->total_ns;
	to->count += v->count;
	to->max_ns = MAX(to->max_ns, v->max_ns);
	to->first_ns = MIN(to->first_ns, v->first_ns);
	to->last_ns = MAX(to->last_ns, v->last_ns);
	to->runnable_ns += v->runnable_ns;
	to->split += v->split;
}

/* The map was swapped for the sake of one process: the rows of others, and of one epoch, become one again. */
static void merge_rows(struct recorder *r)
{
	size_t kept = 0;

	qsort(r->rows, r->n_rows, sizeof(*r->rows), by_key_and_time);
	for (size_t i = 1; i < r->n_rows; i++) {
		struct row *last = &r->rows[kept], *row = &r->rows[i];

		if (memcmp(&last->key, &row->key, sizeof(row->key)) == 0 && in_one_epoch(r, last, row))
			add_value(&last->value, &row->value);
		else
			r->rows[++kept] = *row;
	}
	r->n_rows = r->n_rows ? kept + 1 : 0;
}

/* Rows whose stack is not known yet stay for the next flush. */
static void write_rows(struct recorder *r)
{
	size_t kept = 0;

	if (r->reswapped && !r->opts->bpf.events)
		merge_rows(r);
	r->reswapped = false;
	for (size_t i = 0; i < r->n_rows; i++)
		if (!write_row(r, &r->rows[i]))
			r->rows[kept++] = r->rows[i];
	r->n_rows = kept;
	if (r->snaps)
		late_stacks_tidy(r->snaps);
}

/*
 * Report the end of the broker: mappings that it would have opened are missing,
 * which counters alone do not show.
 */
static void miss_broker(struct recorder *r)
{
	struct worker_stats st;
	struct err why = { 0 };

	worker_stats(r->p.broker, &st);
	if (r->broker_missed || !st.why[0])
		return;
	r->broker_missed = true;
	err_set(&why, -ENOTCONN, "%s", st.why);
	session_parts_degrade(&r->p, "what other users' processes map is not opened any more", &why);
	cap_writer_option(r->p.out, &(struct cap_option){ "broker", why.msg });
}

/*
 * Wait until the snapshots have their tables: those that are being compiled,
 * and those that the next frames turn out to need.
 */
static void await_last(struct recorder *r)
{
	uint64_t end_ns = now_ns() + session_parts_patience_ns(&r->p, LAST_TABLES_NS, LAST_TABLES_LOADS), now;
	struct unwinder_stats st;
	size_t before;

	do {
		before = late_stacks_waiting(r->snaps);
		now = now_ns();
		unwinder_service(r->p.unwinder, now < end_ns ? (int)((end_ns - now) / 1000000) + 1 : 0);
		now = now_ns();
		if (late_stacks_due_ns(r->snaps) > now)
			usleep((useconds_t)((MIN(late_stacks_due_ns(r->snaps) - now, 10000000)) / 1000));
		walk_snapshots(r, false);
		unwinder_stats(r->p.unwinder, &st);
	} while (late_stacks_waiting(r->snaps) && now < end_ns &&
		 (st.tables.pending || late_stacks_waiting(r->snaps) < before));
}

static void write_counters(struct recorder *r)
{
	struct recorder_stats st;
	struct counters c;

	recorder_stats(r, &st);
	record_stats_counters(&st, &c);
	counters_write(&c, r->p.out);
}

static size_t remembered(const struct recorder *r)
{
	return stack_table_count(r->p.stacks) + waker_table_count(r->wakers);
}

/*
 * After a flush: begin to forget, or forget, the stacks and wakers that no thread, no wait and no snapshot
 * refers to. There are at most FORGET_MIN, or twice those in use, and those of the seconds that it takes.
 */
static void forget(struct recorder *r)
{
	if (r->forgetting == REMEMBERS && remembered(r) >= r->forget_at) {
		stack_table_turn(r->p.stacks);
		waker_table_turn(r->wakers);
		offcpu_turn(r->p.bpf);
		r->turned_ns = now_ns();
		r->forgetting = TURNED;
	} else if (r->forgetting == HELD) {
		for (size_t i = 0; i < r->n_rows; i++) {
			hold_stack(r, CAPTURE_STACK_KERNEL, &r->rows[i].key.kernel);
			hold_stack(r, CAPTURE_STACK_USER, &r->rows[i].key.user);
			hold_waker(r, &r->rows[i].key.waker);
		}
		if (r->snaps)
			late_stacks_hold(r->snaps, r->p.stacks);
		waker_table_forget(r->wakers, r->p.stacks);
		stack_table_forget(r->p.stacks);
		jit_store_forget(r->jit, r->p.stacks);
		r->forget_at = MAX((size_t)FORGET_MIN, 2 * remembered(r));
		r->forgetting = REMEMBERS;
	}
}

/*
 * Before a flush, and before its waits are taken: what do threads refer to? By now no program runs that has
 * not seen the epoch.
 */
static void hold(struct recorder *r)
{
	if (r->forgetting != TURNED || now_ns() - r->turned_ns < FLUSH_NS / 2)
		return;
	/* it is tried again */
	if (offcpu_held(r->p.bpf, &r->sink, NULL) == 0)
		r->forgetting = HELD;
}

/* Write everything that the kernel has reported up to now. LAST: leave nothing for later. */
static int flush(struct recorder *r, bool last, struct err *e)
{
	drain_events(r, false);
	while (!process_table_scan_some(r->p.procs, UINT64_MAX))
		;
	process_table_freshen(r->p.procs, UINT64_MAX);
	read_symbols(r);
	take_symbols(r);
	walk_snapshots(r, false);
	if (last && r->snaps && late_stacks_due_ns(r->snaps) != UINT64_MAX) {
		await_last(r);
		walk_snapshots(r, true);
	}
	write_rows(r);
	process_table_write_lives(r->p.procs, r->n_rows, r->p.out);
	forget(r);
	process_table_flush(r->p.procs, now_ns(), r->p.out);
	miss_broker(r);
	write_counters(r);
	/* what is done after the recording may take a while, and the ring is to keep what was before its end
	 */
	if (!r->release)
		return cap_writer_flush(r->p.out, last ? r->stop_ns : now_ns(), e);
	r->release = false;
	return cap_writer_release(r->p.out, now_ns(), e);
}

void recorder_release(struct recorder *r)
{
	r->release = true;
	r->next_flush_ns = now_ns();
}

bool recorder_full(const struct recorder *r)
{
	return cap_writer_full(r->p.out);
}

uint64_t recorder_triggered(const struct recorder *r, uint32_t *tid)
{
	return offcpu_triggered(r->p.bpf, tid);
}

static uint64_t published(void *ctx, uint32_t tgid, uint64_t time_ns)
{
	return unwinder_since(ctx, tgid, time_ns);
}

/* Update processes and tables. Walk the waits that lacked a table once it is available. */
static int keep_up(struct recorder *r, struct err *e)
{
	uint64_t began, now;
	int rc;

	if (unwinder_service(r->p.unwinder, 0))
		r->rewalk = true;
	process_table_published(r->p.procs, published, r->p.unwinder);
	process_table_freshen(r->p.procs, SCAN_NS);
	walk_snapshots(r, false);
	session_parts_exclude(&r->p);
	began = now_ns();
	if (!r->rewalk || began < r->rewalk_due_ns)
		return 0;
	r->rewalk = false;
	rc = offcpu_rewalk(r->p.bpf, e);
	now = now_ns();
	r->rewalk_due_ns = now + (now - began) * REWALK_SHARE;
	return rc;
}

/* Call it after a swap. It calls unwinder_quiet() once a second at most. */
static void report_quiet(struct recorder *r)
{
	uint64_t now = now_ns();

	if (!r->p.unwinder || now - r->quiet_ns < FLUSH_NS)
		return;
	r->quiet_ns = now;
	/* nothing reports new mappings: read them again */
	if (!r->p.events)
		unwinder_distrust(r->p.unwinder);
	unwinder_quiet(r->p.unwinder);
}

#define EVERY_MAX 1024
#define OVERHEAD_NS UINT64_C(100000000) /* how often the number is chosen */

/* Take fewer stacks if that cost more than opts.overhead since the last time, more if it cost less than half.
 */
static void keep_overhead(struct recorder *r)
{
	const uint64_t now = now_ns(), past = now - r->overhead.time_ns;
	struct offcpu_counters c;
	double share;

	if (!r->opts->bpf.overhead || past < OVERHEAD_NS)
		return;
	offcpu_counters(r->p.bpf, &c);
	if (!r->overhead.every) {
		r->overhead.every = 1;
		r->overhead.cpus = get_nprocs();
	} else {
		share = (double)(c.spent_ns - r->overhead.spent_ns) / ((double)past * r->overhead.cpus) * 1e4;
		if (share > r->opts->bpf.overhead)
			r->overhead.every = MIN(r->overhead.every * 2, EVERY_MAX);
		else if (share < r->opts->bpf.overhead / 2.0 && r->overhead.every > 1)
			r->overhead.every /= 2;
	}
	r->overhead.spent_ns = c.spent_ns;
	r->overhead.time_ns = now;
	offcpu_sample_stacks(r->p.bpf, r->overhead.every);
}

/* BPF does not use the old aggregation map any more: read it and, if a flush is due, write what is new. */
static int end_swap(struct recorder *r, struct err *e)
{
	int rc = offcpu_end_swap(r->p.bpf, &r->sink, e);

	r->swapping = false;
	if (rc)
		return rc;
	report_quiet(r);
	if (!r->flushing) {
		r->reswapped = true;
		return 0;
	}
	r->flushing = false;
	while (r->next_flush_ns <= now_ns())
		r->next_flush_ns += FLUSH_NS;
	rc = flush(r, false, e);
	/* with all processes recorded, those that look names up would be recorded too */
	if (r->namer && !r->all) {
		foresee_names(r);
		name_store_service(r->namer);
	}
	return rc;
}

/*
 * Swap the aggregation map for a flush, or because an address has another meaning
 * now: then the waits before and after that get rows of their own, to be written by
 * the next flush. False if it is time for neither.
 */
static bool begin_swap(struct recorder *r)
{
	const bool remapped = process_table_remapped(r->p.procs);

	/* while a pipe is not read, sums go on */
	r->flushing = (now_ns() >= r->next_flush_ns && !cap_writer_behind(r->p.out)) ||
		      offcpu_crowded(r->p.bpf) || r->n_rows >= ROWS_MAX;
	if (!r->flushing && !remapped)
		return false;
	if (r->flushing)
		hold(r);
	/* a ring keeps the waits of the last flushes, and with them what the threads did */
	offcpu_begin_swap(r->p.bpf, r->flushing && (r->opts->keep_ns || r->opts->max_bytes));
	r->swapping = true;
	return true;
}

int recorder_service(struct recorder *r, struct err *e)
{
	struct epoll_event ready[4];
	int rc;

	/* clears the readiness of both buffers; the code below decides what is read */
	epoll_wait(r->p.epoll_fd, ready, ARRAY_LEN(ready), 0);
	offcpu_drain(r->p.bpf, &r->sink);
	drain_events(r, true);
	r->burst = r->p.events && procevents_pending(r->p.events) ? MIN(r->burst + 1, FLOOD_SERVICES + 1) : 0;
	keep_overhead(r);
	jit_store_poll(r->jit, now_ns());
	rc = cap_writer_service(r->p.out, e);
	if (!rc && r->p.unwinder)
		rc = keep_up(r, e);
	if (rc)
		return rc;
	r->scanning = !process_table_scan_some(r->p.procs, SCAN_NS);
	read_symbols(r);
	if (kallsyms_loader_ready(&r->loading))
		take_symbols(r);
	if (!r->swapping && !begin_swap(r))
		return 0;
	return offcpu_swapped(r->p.bpf) ? end_swap(r, e) : 0;
}

/* Write the names last: everything that could not be read later is in the file by now. */
static void keep_names(struct recorder *r)
{
	jit_store_write(r->jit, r->p.out);
	name_store_finish(r->namer, session_parts_patience_ns(&r->p, NAMES_NS, NAMES_LOADS));
	write_counters(r);
}

int recorder_stop(struct recorder *r, const char *why, struct err *e)
{
	struct runtimes_stats runtimes;
	char unseen[64];
	uint64_t stop_ns;
	int rc = r->swapping ? end_swap(r, e) : 0;

	if (rc)
		return rc;
	rc = offcpu_freeze(r->p.bpf, r->p.events, &r->sink, &stop_ns, e);
	r->stop_ns = rc ? 0 : stop_ns;
	limit_broker(r, now_ns());
	if (!rc)
		rc = flush(r, true, e);
	runtimes_stats(r->p.runtimes, &runtimes);
	if (runtimes.summary[0])
		cap_writer_option(r->p.out, &(struct cap_option){ "runtimes", runtimes.summary });
	offcpu_unseen(r->p.bpf, unseen, sizeof(unseen));
	if (unseen[0])
		cap_writer_option(r->p.out, &(struct cap_option){ "unseen", unseen });
	if (!rc && r->names)
		keep_names(r);
	return rc ? rc
		  : cap_writer_finish(r->p.out, &(struct cap_trailer){ .stop_ns = stop_ns, .why = why }, e);
}

bool recorder_comm_seen(const struct recorder *r, const char *comm)
{
	return offcpu_comm_seen(r->p.bpf, comm);
}

void recorder_stats(struct recorder *r, struct recorder_stats *ret)
{
	*ret = (struct recorder_stats){ .start_ns = r->start_ns,
		.now_ns = r->stop_ns ? r->stop_ns : now_ns(),
		.bytes = cap_writer_bytes(r->p.out),
		.place = cap_writer_place(r->p.out),
		.degraded = r->p.degraded,
		.children = r->children,
		.runtime_flags = file_table_runtime_flags(
			process_table_files(r->p.procs), runtimes_walks_java(r->p.runtimes)),
		.privileges = r->privileges,
		.rows_lost = r->rows_lost,
		.rows_lost_ns = r->rows_lost_ns,
		.samples_lost = r->samples_lost,
		.ptrace = r->ptrace,
		.deepest = r->opts->bpf.depth >= OFFCPU_DEPTH_MAX,
		.no_waits = r->opts->bpf.no_waits,
		.chosen = !r->opts->bpf.all };
	cap_writer_waits(r->p.out, &ret->waits, &ret->waits_ns);
	offcpu_unseen(r->p.bpf, ret->unseen, sizeof(ret->unseen));
	cap_writer_overwritten(r->p.out, &ret->overwritten, &ret->overwritten_ns);
	offcpu_counters(r->p.bpf, &ret->bpf);
	process_table_stats(r->p.procs, &ret->procs);
	stack_table_stats(r->p.stacks, &ret->stacks);
	ret->by_table = r->p.unwinder != NULL;
	runtimes_stats(r->p.runtimes, &ret->runtimes);
	if (r->p.unwinder)
		unwinder_stats(r->p.unwinder, &ret->unwind);
	if (r->snaps)
		late_stacks_stats(r->snaps, &ret->snaps);
	jit_store_stats(r->jit, &ret->jit);
	worker_stats(r->p.broker, &ret->broker);
	ret->by_name = r->names != NULL;
	if (r->namer)
		name_store_stats(r->namer, &ret->names);
	ret->user = r->user;
	ret->cpu = r->cpu;
	ret->wakers = r->wakers != NULL;
	ret->wakers_known = r->wakers_known;
	ret->wakers_missing = r->wakers_missing;
}
