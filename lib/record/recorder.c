/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder.h"
#include "caphost.h"
#include "procinfo.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#define FLUSH_NS UINT64_C(1000000000)
#define TICK_MS 100

/* A sample waits for the process events of its time before it is written. */
struct row {
	struct offcpu_key key;
	struct offcpu_value value;
};

struct recorder {
	struct offcpu *bpf;
	struct procevents *events; /* NULL = not allowed: /proc alone */
	struct proctab *procs;
	struct stacktab *stacks;
	struct kallsyms *ks;
	struct capwrite *out;
	struct row *rows;
	size_t n_rows, cap_rows;
	uint64_t rows_lost; /* no memory */
	int epoll_fd;
	uint64_t start_ns, stop_ns, next_flush_ns, symbols_ns;
	bool all;
	char degraded[512];
	struct offcpu_sink sink;
};

uint64_t recorder_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
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
		rc = scan_target(r, o->command_pid, e);
	return rc;
}

static void write_options(struct recorder *r, const struct recorder_opts *o)
{
	char number[32];

	for (size_t i = 0; i < o->n_words; i++)
		capwrite_option(r->out, &(struct cap_option){ "argv", o->words[i] });
	snprintf(number, sizeof(number), "%u", o->bpf.depth);
	capwrite_option(r->out, &(struct cap_option){ "depth", number });
	capwrite_option(r->out, &(struct cap_option){ "unwind", "fp" });
	capwrite_option(
		r->out, &(struct cap_option){ "preempted", o->bpf.preempted ? "recorded" : "filtered" });
	if (r->degraded[0])
		capwrite_option(r->out, &(struct cap_option){ "degraded", r->degraded });
}

static int open_parts(struct recorder *r, const struct recorder_opts *o, struct err *e)
{
	bool all = o->bpf.all || o->n_comms;
	struct err why;
	int rc;

	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0)
		return err_sys(e, -errno, "cannot create an epoll instance");
	rc = stacktab_new(o->bpf.depth, &r->stacks, e);
	if (!rc)
		rc = proctab_new(all, o->bpf.follow, &r->procs, e);
	if (!rc && procevents_open(&r->events, &why) != 0)
		degrade(r, "mappings made during the recording are not seen", &why);
	if (!rc && r->events)
		rc = watch(r, procevents_fd(r->events), e);
	if (!rc)
		rc = offcpu_load(&o->bpf, &r->bpf, e);
	if (!rc)
		rc = watch(r, offcpu_fd(r->bpf), e);
	if (!rc)
		rc = ask_targets(r, o, e);
	if (!rc)
		rc = scan_targets(r, o, e);
	if (!rc)
		rc = offcpu_attach(r->bpf, e);
	/* last, so that a recording that cannot begin leaves no file and replaces none */
	if (!rc)
		rc = capwrite_open(o->path, o->force, &r->out, e);
	return rc;
}

int recorder_open(const struct recorder_opts *opts, struct recorder **ret, struct err *e)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_nomem(e, "the recorder");
	r->epoll_fd = -1;
	r->all = opts->bpf.all || opts->n_comms;
	r->sink = (struct offcpu_sink){
		.ctx = r, .stack = take_stack, .thread = take_thread, .sample = take_sample
	};
	rc = open_parts(r, opts, e);
	if (rc) {
		recorder_close(r);
		return rc;
	}
	write_options(r, opts);
	*ret = r;
	return 0;
}

void recorder_close(struct recorder *r)
{
	if (!r)
		return;
	offcpu_close(r->bpf);
	procevents_close(r->events);
	proctab_free(r->procs);
	stacktab_free(r->stacks);
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
	if (r->all)
		proctab_scan_all(r->procs, recorder_now_ns());
	return caphost_write(r->out, r->start_ns, e);
}

int recorder_fd(const struct recorder *r)
{
	return r->epoll_fd;
}

int recorder_timeout_ms(const struct recorder *r)
{
	uint64_t now = recorder_now_ns();

	if (now >= r->next_flush_ns)
		return 0;
	return (int)MIN((r->next_flush_ns - now) / 1000000 + 1, TICK_MS);
}

/*
 * The kernel's symbols are read when the recording runs, not before it, and
 * again (at most every five seconds) when an address has none: a module
 * or a BPF program came.
 */
static void load_symbols(struct recorder *r)
{
	struct kallsyms *ks;
	struct err why;

	if (r->symbols_ns &&
		(!stacktab_wants_symbols(r->stacks) || recorder_now_ns() - r->symbols_ns < 5 * FLUSH_NS))
		return;
	if (kallsyms_load(NULL, &ks, &why) == 0) {
		stacktab_symbols(r->stacks, ks);
		kallsyms_free(r->ks);
		r->ks = ks;
	} else if (!r->symbols_ns) {
		degrade(r, "kernel frames have no names", &why);
		capwrite_option(r->out, &(struct cap_option){ "kallsyms", why.msg });
	}
	r->symbols_ns = recorder_now_ns();
}

static void write_row(struct recorder *r, const struct row *row)
{
	const struct offcpu_key *k = &row->key;
	const struct offcpu_value *v = &row->value;
	struct cap_sample s = { .tid = k->tid,
		.state = k->state,
		.flags = k->flags & (CAP_SAMPLE_EPOCH - 1),
		.total_ns = v->total_ns,
		.count = v->count,
		.max_ns = v->max_ns,
		.first_ns = v->first_ns,
		.last_ns = v->last_ns };

	s.proc = proctab_emit(r->procs, k, v->first_ns, r->out);
	s.flags |= proctab_epoch(r->procs, k, v->first_ns, v->last_ns) * CAP_SAMPLE_EPOCH;
	s.kstack = stacktab_emit(r->stacks, CAP_STACK_KERNEL, &k->kernel, r->out);
	s.ustack = stacktab_emit(r->stacks, CAP_STACK_USER, &k->user, r->out);
	if (s.proc == CAP_NONE || s.kstack == CAP_NONE || s.ustack == CAP_NONE)
		r->rows_lost += v->count;
	else
		capwrite_sample(r->out, &s);
}

static void write_counters(struct recorder *r)
{
	struct recorder_stats st;

	recorder_stats(r, &st);

	const struct cap_counter all[] = {
		{ "waits.seen", st.bpf.seen },
		{ "waits.seen_ns", st.bpf.seen_ns },
		{ "waits.recorded", st.bpf.recorded },
		{ "waits.recorded_ns", st.bpf.recorded_ns },
		{ "filtered.preempted", st.bpf.preempted },
		{ "filtered.preempted_ns", st.bpf.preempted_ns },
		{ "filtered.state", st.bpf.state },
		{ "filtered.state_ns", st.bpf.state_ns },
		{ "filtered.min", st.bpf.min },
		{ "filtered.min_ns", st.bpf.min_ns },
		{ "filtered.max", st.bpf.max },
		{ "filtered.max_ns", st.bpf.max_ns },
		{ "lost.map_full", st.bpf.agg_full },
		{ "lost.map_full_ns", st.bpf.agg_full_ns },
		{ "lost.no_storage", st.bpf.storage },
		{ "lost.begin_unseen", st.bpf.begin_unseen },
		{ "waits.end_estimated", st.bpf.end_estimated },
		{ "lost.memory", r->rows_lost },
		{ "lost.stacks", st.stacks.lost },
		{ "lost.process_events", st.procs.events_lost },
		{ "lost.maps", st.procs.maps_lost },
		{ "maps.refused", st.procs.maps_refused },
		{ "stacks.distinct", st.stacks.stacks },
		{ "stacks.truncated", st.stacks.truncated },
		{ "stacks.kernel_failed", st.bpf.kernel_failed },
		{ "stacks.user_failed", st.bpf.user_failed },
		{ "stacks.resent", st.bpf.ring_full },
		{ "names.resent", st.bpf.ring_thread },
		{ "names.kernel_missing", st.stacks.kernel_unnamed },
		{ "files.unread", st.procs.files_unread },
		{ "clock.back", st.bpf.clock_back },
		{ "processes", st.procs.images },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		capwrite_counter(r->out, &all[i]);
}

/* Everything of the kernel's side up to now is in rows and tables: write it. */
static int flush(struct recorder *r, struct err *e)
{
	if (r->events)
		procevents_drain(r->events, false, take_event, r);
	load_symbols(r);
	for (size_t i = 0; i < r->n_rows; i++)
		write_row(r, &r->rows[i]);
	r->n_rows = 0;
	proctab_flush(r->procs, recorder_now_ns(), r->out);
	write_counters(r);
	return capwrite_flush(r->out, recorder_now_ns(), e);
}

int recorder_service(struct recorder *r, struct err *e)
{
	struct epoll_event ready[4];
	int rc;

	/* clears the readiness of both buffers; what is read is decided below */
	epoll_wait(r->epoll_fd, ready, ARRAY_LEN(ready), 0);
	offcpu_drain(r->bpf, &r->sink);
	if (r->events)
		procevents_drain(r->events, true, take_event, r);
	load_symbols(r);
	if (recorder_now_ns() < r->next_flush_ns && !offcpu_crowded(r->bpf) && !proctab_remapped(r->procs))
		return 0;
	rc = offcpu_swap(r->bpf, &r->sink, e);
	if (rc)
		return rc;
	while (r->next_flush_ns <= recorder_now_ns())
		r->next_flush_ns += FLUSH_NS;
	return flush(r, e);
}

int recorder_stop(struct recorder *r, const char *why, struct err *e)
{
	uint64_t stop_ns;
	int rc = offcpu_freeze(r->bpf, &r->sink, &stop_ns, e);

	r->stop_ns = rc ? 0 : stop_ns;

	if (!rc)
		rc = flush(r, e);
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
	ret->waits = ret->bpf.recorded;
	ret->waits_ns = ret->bpf.recorded_ns;
	ret->lost = ret->bpf.agg_full + ret->bpf.storage + ret->bpf.begin_unseen + r->rows_lost +
		    ret->stacks.lost + ret->procs.events_lost + ret->procs.maps_lost;
}
