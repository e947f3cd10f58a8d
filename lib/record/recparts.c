/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recparts.h"
#include "now.h"
#include "procinfo.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>

#define TABLES_MS 5000 /* how long a recording waits for the unwind tables of its targets */

static void take_mapping(void *ctx, const struct procevent *ev)
{
	struct recparts *p = ctx;

	if (p->unwinder)
		unwinder_mapped(p->unwinder, ev);
}

static void take_image(void *ctx, const struct offcpu_ev_image *ev)
{
	struct recparts *p = ctx;

	if (p->unwinder)
		unwinder_image(p->unwinder, ev);
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
	if (!rc && o->command_pid)
		rc = proctab_scan(p->procs, o->command_pid, now_ns(), e);
	return rc;
}

/* The image of PID, and the tables that were asked for when its maps were read. */
int recparts_publish(struct recparts *p, uint32_t pid, struct err *e)
{
	const struct offcpu_sink sink = { .ctx = p, .image = take_image };
	int rc = offcpu_images(p->bpf, pid, &sink, e);

	unwinder_service(p->unwinder, TABLES_MS);
	return rc;
}

/* The images of the targets, and the tables that were asked for when their maps were read. */
static int publish_targets(struct recparts *p, const struct recorder_opts *o, struct err *e)
{
	const struct offcpu_sink sink = { .ctx = p, .image = take_image };
	struct procinfo_status st;
	int rc = 0;

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
	unwinder_service(p->unwinder, TABLES_MS);
	offcpu_leave_out(p->bpf, unwinder_worker(p->unwinder));
	return rc;
}

/* First of all: it forks a process that must inherit nothing. */
static int open_unwinder(struct recparts *p, const struct recorder_opts *o, struct err *e)
{
	struct tableset_opts opts = { .bytes = o->unwind_bytes, .all = o->bpf.all || o->n_comms };
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

/* The BPF side, loaded by a thread. */
struct loading {
	struct offcpu_opts opts;
	enum recorder_unwind unwind;
	struct unwindspace_fds tables;
	pthread_t thread;
	bool begun;
	struct offcpu *bpf;
	struct err why_fp; /* why not by tables; "" = as asked */
	struct err e;
	int rc;
};

/* With --unwind auto a kernel that refuses the walk by tables gets the one by frame pointer. */
static void *run_loading(void *ctx)
{
	struct loading *l = ctx;

	l->rc = offcpu_load(&l->opts, &l->bpf, &l->e);
	if (!l->rc || !l->opts.tables || l->unwind == RECORDER_UNWIND_DWARF)
		return NULL;
	l->why_fp = l->e;
	l->opts.tables = NULL;
	l->rc = offcpu_load(&l->opts, &l->bpf, &l->e);
	return NULL;
}

static void begin_loading(struct loading *l, const struct recparts *p, const struct recorder_opts *o)
{
	l->opts = o->bpf;
	l->unwind = o->unwind;
	if (p->unwinder) {
		unwinder_fds(p->unwinder, &l->tables);
		l->opts.tables = &l->tables;
		l->opts.forks_untold = !p->events;
	}
	l->begun = pthread_create(&l->thread, NULL, run_loading, l) == 0;
	if (!l->begun)
		run_loading(l);
}

static int end_loading(struct loading *l, struct recparts *p, struct err *e)
{
	struct err limits = { 0 };

	if (l->begun)
		pthread_join(l->thread, NULL);
	p->bpf = l->bpf;
	if (l->rc) {
		if (e)
			*e = l->e;
		return l->rc;
	}
	snprintf(limits.msg, sizeof(limits.msg), "%s", offcpu_limits(p->bpf));
	if (limits.msg[0])
		recparts_degrade(p, "without BTF", &limits);
	if (l->why_fp.msg[0]) {
		recparts_degrade(p, "user stacks by frame pointer", &l->why_fp);
		unwinder_close(p->unwinder);
		p->unwinder = NULL;
	}
	return 0;
}

/* Tables are compiled while the verifier works. */
static int load_and_scan(struct recparts *p, const struct recorder_opts *o, struct err *e)
{
	struct loading l = { 0 };
	struct err why;
	int rc, loaded;

	begin_loading(&l, p, o);
	rc = scan_targets(p, o, e);
	loaded = end_loading(&l, p, &why);
	p->refused = loaded != 0;
	if (!rc && loaded && e)
		*e = why;
	return rc ? rc : loaded;
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
	if (!rc && procevents_open(p->unwinder != NULL, &p->events, &why) != 0)
		recparts_degrade(p, "mappings made during the recording are not seen", &why);
	if (!rc && p->events)
		rc = watch(p, procevents_fd(p->events), e);
	if (!rc && p->events && p->unwinder)
		procevents_at_once(p->events, take_mapping, p);
	return rc;
}

int recparts_open(struct recparts *p, const struct recorder_opts *o, struct err *e)
{
	int rc;

	*p = (struct recparts){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
	if (p->epoll_fd < 0)
		return err_sys(e, -errno, "cannot create an epoll instance");
	rc = open_unwinder(p, o, e);
	if (!rc)
		rc = open_tables(p, o, e);
	if (!rc)
		rc = load_and_scan(p, o, e);
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
	if (!rc)
		rc = publish_targets(p, o, e);
	if (!rc && p->unwinder)
		rc = watch(p, unwinder_fd(p->unwinder), e);
	return rc ? rc : capwrite_open(o->path, o->force, &p->out, e);
}

void recparts_close(struct recparts *p)
{
	offcpu_close(p->bpf);
	unwinder_close(p->unwinder);
	procevents_close(p->events);
	proctab_free(p->procs);
	stacktab_free(p->stacks);
	capwrite_close(p->out);
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
}
