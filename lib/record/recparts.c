/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/recparts.h"
#include "base/clock.h"
#include "base/text.h"
#include "record/outchild.h"
#include "system/broker.h"
#include "system/privileges.h"
#include "system/proc.h"
#include "system/sandbox.h"
#include "system/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/epoll.h>

/* How long a recording waits for the unwind tables of its targets; or so many times what loading took. */
#define TABLES_NS UINT64_C(5000000000)
#define TABLES_LOADS 20

static void take_mapping(void *ctx, const struct procevent *ev)
{
	struct recparts *p = ctx;

	if (p->unwinder)
		unwinder_mapped(p->unwinder, ev);
}

static void take_image(void *ctx, const struct offcpu_ev_image *ev)
{
	recparts_image(ctx, ev);
}

void recparts_stale(struct recparts *p, const struct offcpu_ev_image *ev)
{
	if (p->events)
		return;
	/* the unwinder says when it has read it */
	if (ev->type == OFFCPU_EV_MAPPING)
		proctab_mapping(p->procs, ev);
	else
		proctab_stale(p->procs, ev, false);
	if (p->unwinder)
		unwinder_stale(p->unwinder, ev);
}

void recparts_image(struct recparts *p, const struct offcpu_ev_image *ev)
{
	if (ev->type == OFFCPU_EV_MAPPING) {
		recparts_stale(p, ev);
		return;
	}
	if (p->unwinder && ev->type == OFFCPU_EV_FORK)
		unwinder_forked(p->unwinder, ev);
	else if (p->unwinder)
		unwinder_image(p->unwinder, ev);
	if (!p->events)
		proctab_image_seen(p->procs, ev);
}

struct asked {
	struct offcpu_ev_image *ret;
	uint32_t tgid;
	bool found;
};

/* A kernel that cannot restrict the iterator reports all processes. */
static void take_asked(void *ctx, const struct offcpu_ev_image *ev)
{
	struct asked *a = ctx;

	if (ev->tgid != a->tgid)
		return;
	a->found = true;
	*a->ret = *ev;
}

static bool identity_of(void *ctx, uint32_t tgid, struct offcpu_ev_image *ret)
{
	struct recparts *p = ctx;
	struct asked a = { .ret = ret, .tgid = tgid };
	const struct offcpu_sink sink = { .ctx = &a, .image = take_asked };

	return offcpu_images(p->bpf, tgid, &sink, NULL) == 0 && a.found;
}

void recparts_degrade(struct recparts *p, const char *what, const struct err *e)
{
	size_t len = strlen(p->degraded);

	snprintf(p->degraded + len, sizeof(p->degraded) - len, "%s%s: %s%s%s", len ? "; " : "", what, e->msg,
		e->hint[0] ? "; " : "", e->hint);
}

static int watch(struct recparts *p, int fd, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0)
		return err_sys(e, -errno, "cannot wait for the kernel's buffers");
	return 0;
}

static int ask_targets(struct recparts *p, const struct recorder_opts *o, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < o->n_pids && !rc; i++)
		rc = offcpu_ask_pid(p->bpf, o->pids[i], e);
	for (size_t i = 0; i < o->n_tids && !rc; i++)
		rc = offcpu_ask_tid(p->bpf, o->tids[i], e);
	for (size_t i = 0; i < o->n_comms && !rc; i++)
		rc = offcpu_ask_comm(p->bpf, o->comms[i], e);
	if (!rc && o->command_pid)
		rc = offcpu_ask_exec(p->bpf, o->command_pid, e);
	return rc;
}

/* A process that is gone ends the recording; one whose maps may not be read is recorded without them. */
static int scan_target(struct recparts *p, uint32_t pid, struct err *e)
{
	struct err why;
	int rc = proctab_scan(p->procs, pid, now_ns(), &why);

	if (!rc && p->unwinder)
		unwinder_prepare(p->unwinder, pid);
	if (rc == -ESRCH)
		return err_set(e, rc, "process %u has exited meanwhile", pid);
	if (rc)
		recparts_degrade(p, "user frames have no names", &why);
	return 0;
}

/* The maps of what is asked for are read before the first wait can be recorded. */
static int scan_targets(struct recparts *p, const struct recorder_opts *o, struct err *e)
{
	struct procinfo_status st;
	int rc = 0;

	for (size_t i = 0; i < o->n_pids && !rc; i++)
		rc = scan_target(p, o->pids[i], e);
	for (size_t i = 0; i < o->n_tids && !rc; i++)
		rc = procinfo_status(o->tids[i], &st) ? scan_target(p, st.tgid, e) : 0;
	/* what nearly every command maps once it runs: its table is there before */
	if (!rc && o->command_pid && p->unwinder)
		unwinder_expect(p->unwinder, (const void *)(uintptr_t)malloc);
	/* until it execs it is a copy of ours, with privileges that we may not look into any more, and
	 * without events nothing would end that copy */
	if (!rc && o->command_pid && p->events)
		proctab_scan(p->procs, o->command_pid, now_ns(), NULL);
	return rc;
}

uint64_t recparts_patience_ns(const struct recparts *p, uint64_t least_ns, unsigned int times)
{
	return MAX(least_ns, p->load_ns * times);
}

static void await_tables(struct recparts *p)
{
	unwinder_service(
		p->unwinder, (int)(recparts_patience_ns(p, TABLES_NS, TABLES_LOADS) / UINT64_C(1000000)));
}

/* The image of PID, and the tables that were asked for when its maps were read. */
int recparts_publish(struct recparts *p, uint32_t pid, struct err *e)
{
	const struct offcpu_sink sink = { .ctx = p, .image = take_image };
	int rc = offcpu_images(p->bpf, pid, &sink, e);

	await_tables(p);
	return rc;
}

void recparts_leave_out(struct recparts *p)
{
	offcpu_leave_out(p->bpf, p->unwinder ? unwinder_worker(p->unwinder) : 0, opener_pid(p->opener));
}

/* The images of the targets, and the tables that were asked for when their maps were read. */
static int publish_targets(struct recparts *p, const struct recorder_opts *o, struct err *e)
{
	const struct offcpu_sink sink = { .ctx = p, .image = take_image };
	struct procinfo_status st;
	int rc = 0;

	recparts_leave_out(p);
	if (!p->unwinder)
		return 0;
	for (size_t i = 0; i < o->n_pids && !rc; i++)
		rc = offcpu_images(p->bpf, o->pids[i], &sink, e);
	for (size_t i = 0; i < o->n_tids && !rc; i++)
		if (procinfo_status(o->tids[i], &st))
			rc = offcpu_images(p->bpf, st.tgid, &sink, e);
	/* of all that are in the cgroup */
	if (!rc && o->bpf.all && o->bpf.use_cgroup)
		rc = offcpu_images(p->bpf, 0, &sink, e);
	await_tables(p);
	return rc;
}

/* First of all: it forks a process that must inherit nothing. */
static void open_opener(struct recparts *p, const struct recorder_opts *o)
{
	const struct openchild_opts opts = { .owner_only = o->bpf.owner_only };
	struct err why;

	p->opener_caps = openchild_caps(&opts);
	if (openchild_start(&opts, &p->opener, &why) != 0)
		recparts_degrade(p, "what other users' processes map is not opened", &why);
}

/* Before anything is opened, for it forks too. */
static int open_unwinder(struct recparts *p, const struct recorder_opts *o, struct err *e)
{
	struct tableset_opts opts = { .bytes = o->unwind_bytes,
		.all = o->bpf.all || o->n_comms,
		.raw = o->bpf.raw,
		.opener = p->opener };
	struct err why;
	int rc;

	if (o->bpf.no_user_stacks || o->unwind == RECORDER_UNWIND_FP)
		return 0;
	rc = unwinder_open(&opts, &p->unwinder, &why);
	if (rc && o->unwind == RECORDER_UNWIND_DWARF) {
		if (e)
			*e = why;
		return rc;
	}
	if (rc)
		recparts_degrade(p, "user stacks by frame pointer", &why);
	return 0;
}

static void add_limits(struct recparts *p, bool raw)
{
	struct err limits = { 0 };

	snprintf(limits.msg, sizeof(limits.msg), "%s", offcpu_limits(p->bpf));
	if (limits.msg[0])
		recparts_degrade(p, raw ? "without BTF" : "this kernel", &limits);
}

/* With --unwind auto a kernel that refuses the walk by tables gets the one by frame pointer. */
static int load(struct recparts *p, const struct recorder_opts *o, struct err *e)
{
	struct offcpu_opts opts = o->bpf;
	struct unwindspace_fds tables;
	struct err why;
	int rc;

	opts.opener = p->opener;
	opts.no_events = !p->events;
	if (p->unwinder) {
		unwinder_fds(p->unwinder, &tables);
		opts.tables = &tables;
	}
	rc = offcpu_load(&opts, &p->bpf, &why);
	if (rc && p->unwinder && o->unwind != RECORDER_UNWIND_DWARF) {
		recparts_degrade(p, "user stacks by frame pointer", &why);
		opts.tables = NULL;
		rc = offcpu_load(&opts, &p->bpf, &why);
		unwinder_close(p->unwinder);
		p->unwinder = NULL;
	}
	p->refused = rc != 0;
	if (rc && e)
		*e = why;
	if (!rc)
		add_limits(p, opts.raw);
	return rc;
}

/* What can be had with privileges only. */
static void open_files(struct recparts *p)
{
	struct err why;

	runsoon();
	p->kallsyms = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	if (opener_ready(p->opener, &why) != 0)
		recparts_degrade(p, "what other users' processes map is not opened", &why);
}

/* From here on nothing is left of them but what the opener keeps. */
static int drop(struct recparts *p, struct err *e)
{
	return privdrop_recorder(
		offcpu_needs_caps(p->bpf) ? caps_bits((const int[]){ CAP_BPF, CAP_PERFMON }, 2) : 0,
		&p->dropped, e);
}

static int open_tables(struct recparts *p, const struct recorder_opts *o, struct err *e)
{
	bool all = o->bpf.all || o->n_comms;
	struct err why;
	int rc = stacktab_new(o->bpf.depth, &p->stacks, e);

	if (!rc && o->hide_kernel)
		rc = stacktab_hide(p->stacks, e);
	if (!rc)
		rc = proctab_new(all, o->bpf.follow, &p->procs, e);
	if (!rc)
		proctab_opener(p->procs, p->opener);
	if (!rc && procevents_open(p->unwinder != NULL, &p->events, &why) != 0) {
		recparts_degrade(p,
			"processes are followed by /proc alone, which misses what one maps shortly before "
			"its end, and renames",
			&why);
		proctab_without_events(p->procs, identity_of, p);
		if (p->unwinder)
			unwinder_without_events(p->unwinder, p->procs);
	}
	if (!rc && p->events)
		rc = watch(p, procevents_fd(p->events), e);
	if (!rc && p->events && p->unwinder)
		procevents_at_once(p->events, take_mapping, p);
	return rc;
}

/* Everything that takes privileges, and then there are none. */
static int use_privileges(
	struct recparts *p, const struct recorder_opts *o, struct outchild *out, struct err *e)
{
	uint64_t began_ns;
	int rc;

	open_opener(p, o);
	rc = open_unwinder(p, o, e);
	if (!rc)
		rc = open_tables(p, o, e);
	began_ns = now_ns();
	if (!rc)
		rc = load(p, o, e);
	p->load_ns = now_ns() - began_ns;
	if (!rc && p->unwinder)
		stacktab_marked(p->stacks);
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
	open_files(p);
	rc = outchild_early(out, e);
	return rc ? rc : drop(p, e);
}

/* Without any privilege: the rest, and the output. */
static int get_ready(struct recparts *p, const struct recorder_opts *o, struct outchild *out, struct err *e)
{
	int rc = scan_targets(p, o, e), fd;

	if (!rc)
		rc = publish_targets(p, o, e);
	if (!rc && p->unwinder)
		rc = watch(p, unwinder_fd(p->unwinder), e);
	if (rc)
		return rc;
	fd = outchild_take(out, e);
	return fd < 0 ? fd : capwrite_begin(fd, o->path, &p->out, e);
}

int recparts_open(struct recparts *p, const struct recorder_opts *o, struct err *e)
{
	struct outchild out;
	int rc;

	*p = (struct recparts){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC), .kallsyms = -1 };
	if (p->epoll_fd < 0)
		return err_sys(e, -errno, "cannot create an epoll instance");
	rc = outchild_start(&out, o->path, o->force, e);
	if (!rc)
		rc = use_privileges(p, o, &out, e);
	if (!rc)
		rc = get_ready(p, o, &out, e);
	outchild_close(&out);
	return rc;
}

void recparts_put_privileges(const struct recparts *p, struct buf *b)
{
	privdrop_put(&p->dropped, b);
	if (opener_pid(p->opener))
		privdrop_put_child("the process that opens files", p->opener_caps, b);
	buftext_str(b, "; ");
	sandbox_put(b);
}

void recparts_close(struct recparts *p)
{
	offcpu_close(p->bpf);
	unwinder_close(p->unwinder);
	procevents_close(p->events);
	proctab_free(p->procs);
	stacktab_free(p->stacks);
	capwrite_close(p->out);
	opener_free(p->opener);
	if (p->kallsyms >= 0)
		close(p->kallsyms);
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
}
