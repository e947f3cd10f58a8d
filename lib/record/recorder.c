/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder.h"
#include "caphost.h"
#include "ksymload.h"
#include "now.h"
#include "procinfo.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#define FLUSH_NS UINT64_C(1000000000)
#define TICK_MS 100
#define SWAP_POLL_NS 1000000
#define SCAN_NS 1000000 /* of processes that were there before, between other things */
#define TABLES_MS 5000 /* how long a recording waits for the unwind tables of its targets */
#define LAST_TABLES_MS 50 /* and, at its end, for those of its last waits */
#define LOOK_SHARE 10 /* looking again at waits in progress takes a tenth of the time at most */

/* A sample waits for the process events of its time before it is written. */
struct row {
	struct offcpu_key key;
	struct offcpu_value value;
};

struct recorder {
	struct offcpu *bpf;
	struct unwinder *unwinder; /* NULL = user stacks by frame pointer, or none */
	struct unwindspace_fds tables;
	struct snapset *snaps; /* stacks that are walked afterwards; NULL = no unwinder */
	uint64_t settled_ns; /* process events up to this time are taken */
	bool scanning; /* processes that were there before are still being looked at */
	bool swapping; /* the aggregation map: a flush is under way */
	bool look_again; /* waits in progress lack tables that are there now */
	uint64_t look_due_ns; /* not before */
	uint64_t quiet_ns; /* when the unwinder last heard that RCU had passed */
	struct procevents *events; /* NULL = not allowed: /proc alone */
	struct proctab *procs;
	struct stacktab *stacks;
	struct kallsyms *ks;
	struct ksymload loading; /* the next ones */
	bool symbols_refused; /* and that was told */
	struct capwrite *out;
	struct row *rows;
	size_t n_rows, cap_rows;
	uint64_t rows_lost; /* no memory */
	int epoll_fd;
	uint64_t start_ns, stop_ns, next_flush_ns, symbols_ns;
	bool all;
	struct capends user;
	char degraded[512];
	struct offcpu_sink sink;
};

uint64_t recorder_now_ns(void)
{
	return now_ns();
}

static void take_stack(void *ctx, const struct offcpu_ev_stack *ev)
{
	struct recorder *r = ctx;

	stacktab_add(r->stacks, ev);
}

static void take_thread(void *ctx, const struct offcpu_ev_thread *ev)
{
	struct recorder *r = ctx;

	proctab_announce(r->procs, ev);
}

static void take_image(void *ctx, const struct offcpu_ev_image *ev)
{
	struct recorder *r = ctx;

	if (r->unwinder)
		unwinder_image(r->unwinder, ev);
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
	snapset_add(r->snaps, ev);
	/* it is busy: before those that only wait */
	unwinder_image(r->unwinder, &image);
}

static void take_sample(void *ctx, const struct offcpu_key *key, const struct offcpu_value *value)
{
	struct recorder *r = ctx;

	if (base_grow(&r->rows, &r->cap_rows, r->n_rows + 1, sizeof(*r->rows)) != 0) {
		r->rows_lost += value->count;
		return;
	}
	r->rows[r->n_rows++] = (struct row){ *key, *value };
}

static void take_event(void *ctx, const struct procevent *ev)
{
	struct recorder *r = ctx;

	proctab_event(r->procs, ev);
	if (r->unwinder)
		unwinder_event(r->unwinder, ev);
}

static void take_mapping(void *ctx, const struct procevent *ev)
{
	struct recorder *r = ctx;

	if (r->unwinder)
		unwinder_mapped(r->unwinder, ev);
}

/* With SETTLE the newest events are left for the next time: see procevents.h. */
static void drain_events(struct recorder *r, bool settle)
{
	uint64_t now = recorder_now_ns();

	if (!r->events)
		return;
	procevents_drain(r->events, settle, take_event, r);
	r->settled_ns = settle ? now - PROCEVENTS_SETTLE_NS : now;
}

static void degrade(struct recorder *r, const char *what, const struct err *e)
{
	size_t len = strlen(r->degraded);

	snprintf(r->degraded + len, sizeof(r->degraded) - len, "%s%s: %s%s%s", len ? "; " : "", what, e->msg,
		e->hint[0] ? "; " : "", e->hint);
}

static int watch(struct recorder *r, int fd, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0)
		return err_sys(e, -errno, "cannot wait for the kernel's buffers");
	return 0;
}

static int ask_targets(struct recorder *r, const struct recorder_opts *o, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < o->n_pids && !rc; i++)
		rc = offcpu_ask_pid(r->bpf, o->pids[i], e);
	for (size_t i = 0; i < o->n_tids && !rc; i++)
		rc = offcpu_ask_tid(r->bpf, o->tids[i], e);
	for (size_t i = 0; i < o->n_comms && !rc; i++)
		rc = offcpu_ask_comm(r->bpf, o->comms[i], e);
	if (!rc && o->command_pid)
		rc = offcpu_ask_exec(r->bpf, o->command_pid, e);
	return rc;
}

/* A process that is gone ends the recording; one whose maps may not be read is recorded without them. */
static int scan_target(struct recorder *r, uint32_t pid, struct err *e)
{
	struct err why;
	int rc = proctab_scan(r->procs, pid, recorder_now_ns(), &why);

	if (!rc && r->unwinder)
		unwinder_prepare(r->unwinder, pid);
	if (rc == -ESRCH)
		return err_set(e, rc, "process %u has exited meanwhile", pid);
	if (rc)
		degrade(r, "user frames have no names", &why);
	return 0;
}

/* The maps of what is asked for are read before the first wait can be recorded. */
static int scan_targets(struct recorder *r, const struct recorder_opts *o, struct err *e)
{
	struct procinfo_status st;
	int rc = 0;

	for (size_t i = 0; i < o->n_pids && !rc; i++)
		rc = scan_target(r, o->pids[i], e);
	for (size_t i = 0; i < o->n_tids && !rc; i++)
		rc = procinfo_status(o->tids[i], &st) ? scan_target(r, st.tgid, e) : 0;
	if (!rc && o->command_pid)
		rc = proctab_scan(r->procs, o->command_pid, recorder_now_ns(), e);
	return rc;
}

/* The images of the targets, and the tables that were asked for when their maps were read. */
static int publish_targets(struct recorder *r, const struct recorder_opts *o, struct err *e)
{
	struct procinfo_status st;
	int rc = 0;

	if (!r->unwinder)
		return 0;
	for (size_t i = 0; i < o->n_pids && !rc; i++)
		rc = offcpu_images(r->bpf, o->pids[i], &r->sink, e);
	for (size_t i = 0; i < o->n_tids && !rc; i++)
		if (procinfo_status(o->tids[i], &st))
			rc = offcpu_images(r->bpf, st.tgid, &r->sink, e);
	unwinder_service(r->unwinder, TABLES_MS);
	offcpu_leave_out(r->bpf, unwinder_worker(r->unwinder));
	return rc;
}

static void write_options(struct recorder *r, const struct recorder_opts *o)
{
	char number[32];

	for (size_t i = 0; i < o->n_words; i++)
		capwrite_option(r->out, &(struct cap_option){ "argv", o->words[i] });
	snprintf(number, sizeof(number), "%u", o->bpf.depth);
	capwrite_option(r->out, &(struct cap_option){ "depth", number });
	capwrite_option(r->out, &(struct cap_option){ "unwind", o->bpf.no_user_stacks ? "none"
								: r->unwinder         ? "dwarf"
										      : "fp" });
	capwrite_option(
		r->out, &(struct cap_option){ "preempted", o->bpf.preempted ? "recorded" : "filtered" });
	if (r->degraded[0])
		capwrite_option(r->out, &(struct cap_option){ "degraded", r->degraded });
}

/* First of all: it forks a process that must inherit nothing. */
static int open_unwinder(struct recorder *r, const struct recorder_opts *o, struct err *e)
{
	struct tableset_opts opts = { .bytes = o->unwind_bytes, .all = o->bpf.all || o->n_comms };
	struct err why;
	int rc;

	if (o->bpf.no_user_stacks || o->unwind == RECORDER_UNWIND_FP)
		return 0;
	rc = unwinder_open(&opts, &r->unwinder, &why);
	if (rc && o->unwind == RECORDER_UNWIND_DWARF) {
		if (e)
			*e = why;
		return rc;
	}
	if (rc)
		degrade(r, "user stacks by frame pointer", &why);
	return 0;
}

/* With --unwind auto a kernel that refuses the walk by tables gets the one by frame pointer. */
static int load_bpf(struct recorder *r, const struct recorder_opts *o, struct err *e)
{
	struct offcpu_opts opts = o->bpf;
	struct err why;
	int rc;

	if (!r->unwinder)
		return offcpu_load(&opts, &r->bpf, e);
	unwinder_fds(r->unwinder, &r->tables);
	opts.tables = &r->tables;
	opts.forks_untold = !r->events;
	rc = offcpu_load(&opts, &r->bpf, &why);
	if (!rc)
		return 0;
	if (o->unwind == RECORDER_UNWIND_DWARF) {
		if (e)
			*e = why;
		return rc;
	}
	opts.tables = NULL;
	rc = offcpu_load(&opts, &r->bpf, e);
	if (rc)
		return rc;
	degrade(r, "user stacks by frame pointer", &why);
	unwinder_close(r->unwinder);
	r->unwinder = NULL;
	return 0;
}

static int open_parts(struct recorder *r, const struct recorder_opts *o, struct err *e)
{
	bool all = o->bpf.all || o->n_comms;
	struct err why;
	int rc;

	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0)
		return err_sys(e, -errno, "cannot create an epoll instance");
	rc = open_unwinder(r, o, e);
	if (!rc)
		rc = stacktab_new(o->bpf.depth, &r->stacks, e);
	if (!rc && r->unwinder)
		rc = snapset_new(o->bpf.depth ? o->bpf.depth : 127, &r->snaps, e);
	if (!rc)
		rc = proctab_new(all, o->bpf.follow, &r->procs, e);
	if (!rc && procevents_open(r->unwinder != NULL, &r->events, &why) != 0)
		degrade(r, "mappings made during the recording are not seen", &why);
	if (!rc && r->events)
		rc = watch(r, procevents_fd(r->events), e);
	if (!rc && r->events && r->unwinder)
		procevents_at_once(r->events, take_mapping, r);
	/* tables are compiled while the verifier works */
	if (!rc)
		rc = scan_targets(r, o, e);
	if (!rc)
		rc = load_bpf(r, o, e);
	if (!rc && r->unwinder)
		stacktab_marked(r->stacks);
	if (!rc)
		rc = watch(r, offcpu_fd(r->bpf), e);
	if (!rc)
		rc = ask_targets(r, o, e);
	if (!rc)
		rc = offcpu_attach(r->bpf, e);
	if (!rc)
		rc = publish_targets(r, o, e);
	if (!rc && r->unwinder)
		rc = watch(r, unwinder_fd(r->unwinder), e);
	/* last, so that a recording that cannot begin leaves no file and replaces none */
	if (!rc)
		rc = capwrite_open(o->path, o->force, &r->out, e);
	return rc;
}

/*
 * What new processes map has to be read before they wait: with a short slice
 * the scheduler lets the recorder run when it wakes (Linux 6.12; the niceness
 * works everywhere). Where it is refused, more waits begin too soon.
 */
static void run_soon(void)
{
	/* struct sched_attr, which not every libc has */
	const struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = 48, .nice = -10, .runtime = 100000 };

	syscall(SYS_sched_setattr, 0, &attr, 0);
}

int recorder_open(const struct recorder_opts *opts, struct recorder **ret, struct err *e)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_nomem(e, "the recorder");
	r->epoll_fd = -1;
	r->all = opts->bpf.all || opts->n_comms;
	r->sink = (struct offcpu_sink){ .ctx = r,
		.stack = take_stack,
		.thread = take_thread,
		.image = take_image,
		.snapshot = take_snapshot,
		.sample = take_sample };
	rc = open_parts(r, opts, e);
	if (rc) {
		recorder_close(r);
		return rc;
	}
	run_soon();
	write_options(r, opts);
	*ret = r;
	return 0;
}

void recorder_close(struct recorder *r)
{
	if (!r)
		return;
	offcpu_close(r->bpf);
	unwinder_close(r->unwinder);
	procevents_close(r->events);
	proctab_free(r->procs);
	stacktab_free(r->stacks);
	snapset_free(r->snaps);
	ksymload_close(&r->loading);
	kallsyms_free(r->ks);
	capwrite_close(r->out);
	free(r->rows);
	if (r->epoll_fd >= 0)
		close(r->epoll_fd);
	free(r);
}

int recorder_start(struct recorder *r, struct err *e)
{
	int rc = offcpu_start(r->bpf, &r->start_ns, e);

	if (rc)
		return rc;
	r->next_flush_ns = r->start_ns + FLUSH_NS;
	/* what waited already has asked for tables */
	offcpu_drain(r->bpf, &r->sink);
	if (r->all)
		proctab_scan_all(r->procs);
	return caphost_write(r->out, r->start_ns, e);
}

void recorder_hold(struct recorder *r, uint32_t pid)
{
	offcpu_hold(r->bpf, pid);
}

int recorder_command(struct recorder *r, uint32_t pid, struct err *e)
{
	int rc = 0;

	if (r->unwinder && pid) {
		rc = offcpu_images(r->bpf, pid, &r->sink, e);
		unwinder_service(r->unwinder, TABLES_MS);
	}
	offcpu_hold(r->bpf, 0);
	return rc;
}

int recorder_fd(const struct recorder *r)
{
	return r->epoll_fd;
}

uint64_t recorder_timeout_ns(const struct recorder *r)
{
	uint64_t now = recorder_now_ns(), due = MIN(r->next_flush_ns, now + TICK_MS * UINT64_C(1000000));

	if (r->swapping)
		due = now + SWAP_POLL_NS;
	if (r->scanning)
		due = now;

	if (r->unwinder) {
		due = MIN(due, unwinder_due_ns(r->unwinder));
		due = MIN(due, snapset_due_ns(r->snaps));
		if (r->look_again)
			due = MIN(due, r->look_due_ns);
		if (r->events && procevents_pending(r->events))
			due = MIN(due, now + 1000000);
	}
	return due <= now ? 0 : due - now;
}

/*
 * The kernel's symbols are read while the recording runs, and again (at most
 * every five seconds) when an address has none: a module or a BPF program came.
 */
static void read_symbols(struct recorder *r)
{
	uint64_t now = recorder_now_ns();

	if (r->symbols_ns && (!stacktab_wants_symbols(r->stacks) || now - r->symbols_ns < 5 * FLUSH_NS))
		return;
	ksymload_begin(&r->loading);
	r->symbols_ns = now;
}

/* Before kernel stacks are written. */
static void take_symbols(struct recorder *r)
{
	struct kallsyms *ks;
	struct err why;

	if (!r->loading.running)
		return;
	if (ksymload_take(&r->loading, &ks, &why) == 0) {
		stacktab_symbols(r->stacks, ks);
		kallsyms_free(r->ks);
		r->ks = ks;
	} else if (!r->ks && !r->symbols_refused) {
		r->symbols_refused = true;
		degrade(r, "kernel frames have no names", &why);
		capwrite_option(r->out, &(struct cap_option){ "kallsyms", why.msg });
	}
}

/* Stacks that could not be walked at the switch; LAST: their tables are waited for no longer. */
static void walk_snapshots(struct recorder *r, bool last)
{
	const struct snapset_by by = { .procs = r->procs,
		.stacks = r->stacks,
		.tables = r->unwinder ? unwinder_tables(r->unwinder) : NULL,
		.settled_ns = r->settled_ns };

	if (r->unwinder && r->snaps)
		snapset_walk(r->snaps, &by, last);
}

/* False: its stack is not known yet. */
static bool write_row(struct recorder *r, struct row *row)
{
	struct offcpu_key *k = &row->key;
	const struct offcpu_value *v = &row->value;
	struct stacktab_end end = { 0 };
	struct cap_sample s = { .tid = k->tid,
		.state = k->state,
		.flags = k->flags & (CAP_SAMPLE_EPOCH - 1),
		.total_ns = v->total_ns,
		.count = v->count,
		.max_ns = v->max_ns,
		.first_ns = v->first_ns,
		.last_ns = v->last_ns };

	if (r->snaps && !snapset_answer(r->snaps, &k->user))
		return false;
	s.proc = proctab_emit(r->procs, k, v->first_ns, r->out);
	s.flags |= proctab_epoch(r->procs, k, v->first_ns, v->last_ns) * CAP_SAMPLE_EPOCH;
	s.kstack = stacktab_emit(r->stacks, CAP_STACK_KERNEL, &k->kernel, r->out, NULL);
	s.ustack = stacktab_emit(r->stacks, CAP_STACK_USER, &k->user, r->out, &end);
	capends_add(&r->user, end.verdict, end.reason, v->count);
	if (s.proc == CAP_NONE || s.kstack == CAP_NONE || s.ustack == CAP_NONE)
		r->rows_lost += v->count;
	else
		capwrite_sample(r->out, &s);
	return true;
}

/* Those whose stack is not known yet stay for the next flush. */
static void write_rows(struct recorder *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n_rows; i++)
		if (!write_row(r, &r->rows[i]))
			r->rows[kept++] = r->rows[i];
	r->n_rows = kept;
	if (r->snaps)
		snapset_tidy(r->snaps);
}

/* Everything of the kernel's side up to now is in rows and tables: write it. LAST: and leave nothing. */
static int flush(struct recorder *r, bool last, struct err *e)
{
	struct recorder_stats st;

	drain_events(r, false);
	while (!proctab_scan_some(r->procs, UINT64_MAX))
		;
	read_symbols(r);
	take_symbols(r);
	walk_snapshots(r, false);
	if (last && r->snaps && snapset_due_ns(r->snaps) != UINT64_MAX) {
		unwinder_service(r->unwinder, LAST_TABLES_MS);
		walk_snapshots(r, true);
	}
	write_rows(r);
	proctab_flush(r->procs, recorder_now_ns(), r->out);
	recorder_stats(r, &st);
	recstats_write(&st, r->out);
	return capwrite_flush(r->out, recorder_now_ns(), e);
}

/* Processes and tables in step with what happened; waits that lacked a table are walked when it is there. */
static int keep_up(struct recorder *r, struct err *e)
{
	uint64_t began, now;
	int rc;

	if (unwinder_service(r->unwinder, 0))
		r->look_again = true;
	walk_snapshots(r, false);
	offcpu_leave_out(r->bpf, unwinder_worker(r->unwinder));
	began = recorder_now_ns();
	if (!r->look_again || began < r->look_due_ns)
		return 0;
	r->look_again = false;
	rc = offcpu_look_again(r->bpf, e);
	now = recorder_now_ns();
	r->look_due_ns = now + (now - began) * LOOK_SHARE;
	return rc;
}

/* After a swap; not more than once a second, see unwinder_quiet(). */
static void tell_quiet(struct recorder *r)
{
	uint64_t now = recorder_now_ns();

	if (!r->unwinder || now - r->quiet_ns < FLUSH_NS)
		return;
	r->quiet_ns = now;
	/* nobody tells what is mapped: look */
	if (!r->events)
		unwinder_distrust(r->unwinder);
	unwinder_quiet(r->unwinder);
}

/* The old aggregation map is nobody's any more. */
static int end_flush(struct recorder *r, struct err *e)
{
	int rc = offcpu_end_swap(r->bpf, &r->sink, e);

	r->swapping = false;
	if (rc)
		return rc;
	tell_quiet(r);
	while (r->next_flush_ns <= recorder_now_ns())
		r->next_flush_ns += FLUSH_NS;
	return flush(r, false, e);
}

int recorder_service(struct recorder *r, struct err *e)
{
	struct epoll_event ready[4];
	int rc;

	/* clears the readiness of both buffers; what is read is decided below */
	epoll_wait(r->epoll_fd, ready, ARRAY_LEN(ready), 0);
	offcpu_drain(r->bpf, &r->sink);
	drain_events(r, true);
	rc = r->unwinder ? keep_up(r, e) : 0;
	if (rc)
		return rc;
	r->scanning = !proctab_scan_some(r->procs, SCAN_NS);
	read_symbols(r);
	if (!r->swapping) {
		if (recorder_now_ns() < r->next_flush_ns && !offcpu_crowded(r->bpf) &&
			!proctab_remapped(r->procs))
			return 0;
		offcpu_begin_swap(r->bpf);
		r->swapping = true;
	}
	return offcpu_swapped(r->bpf) ? end_flush(r, e) : 0;
}

int recorder_stop(struct recorder *r, const char *why, struct err *e)
{
	uint64_t stop_ns;
	int rc = r->swapping ? end_flush(r, e) : 0;

	if (rc)
		return rc;
	rc = offcpu_freeze(r->bpf, &r->sink, &stop_ns, e);

	r->stop_ns = rc ? 0 : stop_ns;

	if (!rc)
		rc = flush(r, true, e);
	return rc ? rc : capwrite_finish(r->out, &(struct cap_trailer){ .stop_ns = stop_ns, .why = why }, e);
}

void recorder_stats(struct recorder *r, struct recorder_stats *ret)
{
	*ret = (struct recorder_stats){ .start_ns = r->start_ns,
		.now_ns = r->stop_ns ? r->stop_ns : recorder_now_ns(),
		.bytes = capwrite_bytes(r->out),
		.degraded = r->degraded,
		.rows_lost = r->rows_lost };
	offcpu_counters(r->bpf, &ret->bpf);
	proctab_stats(r->procs, &ret->procs);
	stacktab_stats(r->stacks, &ret->stacks);
	ret->by_table = r->unwinder != NULL;
	if (r->unwinder)
		unwinder_stats(r->unwinder, &ret->unwind);
	if (r->snaps)
		snapset_stats(r->snaps, &ret->snaps);
	ret->user = r->user;
	ret->waits = ret->bpf.recorded;
	ret->waits_ns = ret->bpf.recorded_ns;
	ret->lost = ret->bpf.agg_full + ret->bpf.storage + ret->bpf.begin_unseen + r->rows_lost +
		    ret->stacks.lost + ret->procs.events_lost + ret->procs.maps_lost;
}
